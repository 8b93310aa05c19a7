"""The parser as it comes, beside UDPipe and spaCy: 500 sentences, 2000, and whole treebanks."""

from __future__ import annotations

from common.measure import package_version
from common.report import Table, notes
from dependency import spacy_parser, udpipe
from dependency.data import COLUMNS, TREEBANKS, measured, some
from structsvm.tasks import DependencyParser

FEW = 500
# Beside peers, too, in a part of its own: a table per treebank and number of sentences, None being all.
LARGE = (("UD English EWT", 2000), ("UD English EWT", None), ("UD Dutch", None))
PEER_PASSES = 10
PEERS = {"spaCy": (spacy_parser.spacy, spacy_parser.fit), "UDPipe 1": (udpipe.udpipe, udpipe.fit)}


def parsers(peers):
    """By name: what trains a parser and returns what parses trees."""
    found = {"structsvm, as it comes": lambda train: DependencyParser(random_state=0).fit(train).predict}
    for name, (module, fit) in PEERS.items():
        if peers and module is not None:
            found[f"{name}, {PEER_PASSES} passes"] = lambda train, fit=fit: fit(train, PEER_PASSES)
    return found


def rows(train, test, peers):
    """A row per parser."""
    for parser, fit in parsers(peers).items():
        yield measured(parser, train, test, fit)


def run(options):
    large = options.part == "treebanks-large"
    for name, n in LARGE if large else [(name, FEW) for name in TREEBANKS]:
        data = TREEBANKS[name]()
        train, size = data.train if n is None else some(data.train, n), "all" if n is None else n
        title = f"{name}, {size} sentences" if large else name
        if options.only and options.only not in title:
            continue
        table = Table(f"{title}: gold tags, the test part", COLUMNS, notes=notes(NOTES))
        if any(module for module, _ in PEERS.values()):
            table.notes += notes(OF_PEERS)
        test = data.dev[:100] if options.quick else data.test
        for row in rows(train[:200] if options.quick else train, test, True):
            table.rows.append(row)
            yield table
        if not large and not options.quick:
            table.rows += rows(data.train, test, False)
            yield table


NOTES = f"""
Trained on the training part, or on {FEW} sentences of it, drawn once; every setting was chosen on the development part
of UD English EWT, but from how many crossing arcs on they are looked for, and how many values of XPOS are too many: on
that of UD Dutch; and C on held-out training sentences. LAS and CLAS leave subtypes out, as the official evaluation
does.
"""
OF_PEERS = f"""
Peers on gold tags, one thread: UDPipe {package_version("ufal.udpipe") or ""} with its own settings (projective
transitions, dynamic oracle, embeddings of forms, tags and morphology learnt on the way), spaCy
{package_version("spacy") or ""} with the network of its template for training on a CPU, which also sees the tags.
{PEER_PASSES} passes.
"""
