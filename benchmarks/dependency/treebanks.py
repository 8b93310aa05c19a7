"""Whole treebanks: the parser as it comes, beside UDPipe."""

from __future__ import annotations

import tempfile
from pathlib import Path

from common.report import Table, notes
from dependency import udpipe
from dependency.data import COLUMNS, TREEBANKS, measured, some
from structsvm.tasks import DependencyParser

PEER_SENTENCES = 500


def run(options):
    for name, fetch in TREEBANKS.items():
        if options.only and options.only not in name:
            continue
        data = fetch()
        table = Table(f"{name}: gold tags, the test part", COLUMNS, notes=notes(NOTES))
        sizes = [200] if options.quick else [PEER_SENTENCES, len(data.train)]
        for n in sizes:
            train = some(data.train, n)
            test = data.dev[:100] if options.quick else data.test

            def fit(train):
                parser = DependencyParser(random_state=0).fit(train)
                return parser.predict

            table.rows.append(measured("structsvm, as it comes", train, test, fit))
            yield table
            if udpipe.udpipe is not None and n == sizes[0]:
                with tempfile.TemporaryDirectory() as folder:
                    table.rows.append(
                        measured("UDPipe 1", train, test, lambda trees: udpipe.fit(trees, Path(folder) / "m"))
                    )
                table.notes += notes(OF_UDPIPE)
                yield table


NOTES = f"""
Trained on the training part, or on {PEER_SENTENCES} sentences of it, drawn once; every setting was chosen on the
development part of UD English EWT, and C on held-out training sentences. LAS and CLAS leave subtypes out, as the
official evaluation does.
"""
OF_UDPIPE = """
UDPipe with its own settings (projective transitions, dynamic oracle, 10 iterations, embeddings of forms, tags and
morphology learnt on the way), on gold tags, one thread.
"""
