"""The parser as it comes, beside UDPipe and spaCy: 500 sentences, 2000, and whole treebanks."""

from __future__ import annotations

from common.report import Table, notes
from dependency import spacy_parser, udpipe
from dependency.data import COLUMNS, TREEBANKS, measured, some
from structsvm.tasks import DependencyParser

FEW = 500
# Beside peers, too, in a part of its own: a table per treebank and number of sentences, None being all.
LARGE = (("UD English EWT", 2000), ("UD English EWT", None), ("UD Dutch", None))
OURS = {"structsvm, as it comes": {}, "structsvm, arcs alone": {"order": 1}}
PEER_PASSES = 10
PEERS = {"spaCy": (spacy_parser.spacy, spacy_parser.fit), "UDPipe 1": (udpipe.udpipe, udpipe.fit)}


def parsers(peers):
    """By name: what trains a parser and returns what parses trees."""
    found = {
        name: lambda train, params=params: DependencyParser(random_state=0, **params).fit(train).predict
        for name, params in OURS.items()
    }
    for name, (module, fit) in PEERS.items():
        if peers and module is not None:
            found[f"{name}, {PEER_PASSES} passes"] = lambda train, fit=fit: fit(train, PEER_PASSES)
    return found


def rows(train, test, peers, kept=()):
    """A row per parser; of peers those that are kept."""
    known = {row["parser"]: row for row in kept if row["parser"] not in OURS and row["sentences"] == len(train)}
    for parser, fit in parsers(peers).items():
        yield known.pop(parser, None) or measured(parser, train, test, fit)
    yield from known.values()  # peers that are not installed here


def run(options):
    large = options.part == "treebanks-large"
    before = options.kept.parts.get(options.part)
    reused = before and before["machine"]["cpu"] == options.machine["cpu"] and not (options.fresh or options.quick)
    kept = {table.title: table.rows for table in options.kept.tables(options.part)} if reused else {}
    for name, n in LARGE if large else [(name, FEW) for name in TREEBANKS]:
        data = TREEBANKS[name]()
        train, size = data.train if n is None else some(data.train, n), "all" if n is None else n
        title = f"{name}, {size} sentences" if large else name
        if options.only and options.only not in title:
            continue
        table = Table(f"{title}: gold tags, the test part", COLUMNS, notes=notes(f"{NOTES}\n{OF_PEERS}"))
        test = data.dev[:100] if options.quick else data.test
        for row in rows(train[:200] if options.quick else train, test, True, kept.get(table.title, ())):
            table.rows.append(row)
            yield table
        if not large and not options.quick:
            table.rows += rows(data.train, test, False)
            yield table


NOTES = f"""
Trained on the training part, or on {FEW} sentences of it, drawn once; every setting was chosen on the development part
of UD English EWT, or of both treebanks (the second stage, which scores pairs of arcs: order 2), or on that of UD Dutch
(from how many crossing arcs on they are looked for, and how many values of XPOS are too many); and C on held-out
training sentences. LAS and CLAS leave subtypes out, as the official evaluation
does.
"""
OF_PEERS = f"""
Peers on gold tags, one thread, {PEER_PASSES} passes: UDPipe 1.4.0.1 with its own settings (projective transitions,
dynamic oracle, embeddings of forms, tags and morphology learnt on the way), spaCy 3.8.18 with the network of its
template for training on a CPU, which also sees the tags. Their rows are kept, and made again with --fresh.
"""
