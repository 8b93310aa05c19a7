"""Whole treebanks: the parser as it comes, beside UDPipe and spaCy."""

from __future__ import annotations

from common.measure import package_version
from common.report import Table, notes
from dependency import spacy_parser, udpipe
from dependency.data import COLUMNS, TREEBANKS, measured, some
from structsvm.tasks import DependencyParser

FEW = 500
# Passes of a peer: 10, fewer where those are more words than that, but at least 2.
MOST_PASSES, LEAST_PASSES, PEER_WORDS = 10, 2, 150_000
PEERS = {"UDPipe 1": (udpipe.udpipe, udpipe.fit), "spaCy": (spacy_parser.spacy, spacy_parser.fit)}


def parsers(n_words, options, whole):
    """By name: what trains a parser and returns what parses trees."""
    found = {"structsvm, as it comes": lambda train: DependencyParser(random_state=0).fit(train).predict}
    if whole and not options.whole:
        return found
    for name, (module, fit) in PEERS.items():
        if module is not None:
            passes = min(max(PEER_WORDS // n_words, LEAST_PASSES), MOST_PASSES)
            found[f"{name}, {passes} passes"] = lambda train, fit=fit, passes=passes: fit(train, passes)
    return found


def run(options):
    for name, fetch in TREEBANKS.items():
        if options.only and options.only not in name:
            continue
        data = fetch()
        table = Table(f"{name}: gold tags, the test part", COLUMNS, notes=notes(NOTES))
        if any(module for module, _ in PEERS.values()):
            table.notes += notes(OF_PEERS)
        test = data.dev[:100] if options.quick else data.test
        for n in [200] if options.quick else [FEW, len(data.train)]:
            train = some(data.train, n)
            n_words = sum(len(tree.words) for tree in train)
            for parser, fit in parsers(n_words, options, n == len(data.train)).items():
                table.rows.append(measured(parser, train, test, fit))
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
Passes: {MOST_PASSES}, or as many as make {PEER_WORDS} words, at least {LEAST_PASSES};
both learn more with more of them.
"""
