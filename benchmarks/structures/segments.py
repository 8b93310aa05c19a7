"""Segments beside label chains: chunks and entities, with the same features of tokens."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from structsvm.datasets import fetch_conll2000, fetch_conll2002
from structsvm.features.columns import Columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.metrics import Scheme, chunk_scores
from structsvm.tasks import SequenceLabeler

COLUMNS = {
    "who": ("model", ""),
    "setting": ("chosen", ""),
    "precision": ("precision %", ".2f"),
    "recall": ("recall %", ".2f"),
    "f1": ("F1 %", ".2f"),
    "cpu": ("CPU s with the choice", ".1f"),
    "predict": ("CPU s, test part", ".2f"),
}
SETS = {"CoNLL-2000 chunks": fetch_conll2000, "CoNLL-2002 Spanish entities": fetch_conll2002}
SENTENCES = 2000
PENALTIES = (0.1, 0.3, 1.0)


def run(options):
    for name, fetch in SETS.items():
        data, n = fetch(), 60 if options.quick else SENTENCES
        y_test = data.y_test[:n] if options.quick else data.y_test
        X, X_test = (Columns.from_sequences(part) for part in (data.X_train[:n], data.X_test[: len(y_test)]))
        plain = data.y_train[:n]
        schemes = {"BIO": plain, "BIOES": list(map(Scheme("bioes").repaired, plain))}
        table = Table(f"{name}: {n} sentences of training, {len(y_test)} of test", COLUMNS, notes=notes(NOTES))
        for who, scheme, params in (
            ("SequenceLabeler", "BIO", {}),
            ("SequenceLabeler, labels and constraints BIOES", "BIOES", {"constraints": "bioes"}),
            ("SequenceLabeler, segments=True", "BIO", {"segments": True, "broken": "repair"}),
        ):
            table.rows.append(ours(who, params, X, schemes[scheme], X_test, y_test))
            yield table
        try:
            for scheme, labels in schemes.items():
                table.rows.append(crfsuite(f"python-crfsuite, labels in {scheme}", X, labels, X_test, y_test))
                yield table
        except ImportError:
            table.notes.append("python-crfsuite was not installed")
            yield table


def ours(who, params, X, y, X_test, y_test):
    print(f"  {who}", file=sys.stderr, flush=True)
    with Clock() as clock:
        model = SequenceLabeler(random_state=0, **params).fit(X, y)
    with Clock() as predicting:
        predicted = model.predict(X_test)
    losses = ", ".join(f"{loss}: C = {found[0]:g}" for loss, found in model.validation_["losses"].items())
    return row(who, losses, predicted, y_test, clock.cpu, predicting.cpu)


def row(who, setting, predicted, y_test, cpu, predicting):
    """Chunks as conlleval counts them, in BIO."""
    scores = chunk_scores(y_test, list(map(in_bio, predicted)))
    found = {name: 100.0 * getattr(scores, name) for name in ("precision", "recall", "f1")}
    return {"who": who, "setting": setting, **found, "cpu": cpu, "predict": predicting}


def in_bio(labels):
    """The chunks of labels in BIO or BIOES as labels in BIO."""
    return Scheme("bio").labels(Scheme("bioes").chunks(labels), len(labels))


def crfsuite(who, X, y, X_test, y_test):
    """The penalty by F1 on every fifth sentence, then all of them."""
    import pycrfsuite

    print(f"  {who}", file=sys.stderr, flush=True)
    encoder = FeatureEncoder("rich")
    tokens, test = attributes(encoder.fit_transform(X)), attributes(encoder.transform(X_test))
    with tempfile.TemporaryDirectory() as folder, Clock() as clock:

        def trained(sentences, labels, c2):
            trainer = pycrfsuite.Trainer(
                algorithm="lbfgs", params={"c2": c2, "feature.possible_transitions": True}, verbose=False
            )
            for sentence, its in zip(sentences, labels, strict=True):
                trainer.append(sentence, its)
            path = str(Path(folder) / "model")
            trainer.train(path)
            tagger = pycrfsuite.Tagger()
            tagger.open(path)
            return tagger

        held = np.arange(len(y)) % 5 == 0
        parts = [
            ([s for s, k in zip(tokens, held) if k == way], [s for s, k in zip(y, held) if k == way]) for way in (0, 1)
        ]
        found = []
        for c2 in PENALTIES:
            tagger = trained(*parts[0], c2)
            found.append((chunk_scores(parts[1][1], list(map(tagger.tag, parts[1][0]))).f1, c2))
        c2 = max(found)[1]
        tagger = trained(tokens, y, c2)
    with Clock() as predicting:
        predicted = [tagger.tag(s) for s in test]
    return row(who, f"c2 = {c2:g}", predicted, y_test, clock.cpu, predicting.cpu)


def attributes(tokens):
    """Features as lists of their numbers, as text."""
    names = [str(k) for k in tokens.indices.tolist()]
    every = [names[a:b] for a, b in zip(tokens.indptr[:-1], tokens.indptr[1:])]
    return [every[a:b] for a, b in zip(tokens.offsets[:-1], tokens.offsets[1:])]


NOTES = """
All models have the features of the rich templates. SequenceLabeler as it comes: a CRF and a margin, each with a C that
is chosen on held-out training sentences, added. python-crfsuite: lbfgs, c2 (0.1, 0.3, 1) chosen by F1 on every
fifth training sentence.

F1 is conlleval's, on the test part; its standard error is some 0.3 points for chunks and 0.9 for entities, less between
rows.
"""
