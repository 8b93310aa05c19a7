"""Encoded label-sequence data sets, with training and scoring."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from common.measure import no_gc
from structsvm import datasets
from structsvm.cli.sequence.command import DEFAULTS
from structsvm.features.columns import read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.metrics import chunk_scores, token_accuracy
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor
from structsvm.tasks.common.solver import make_solver
from structsvm.tasks.sequence.labels import encode_labels
from structsvm.tasks.sequence.model import SequenceModel

C = 0.1
SEED = 0
FETCH = {
    "CoNLL-2000": datasets.fetch_conll2000,
    "CoNLL-2002 es": datasets.fetch_conll2002,
    "Treebank tags": datasets.fetch_treebank_tags,
}


@dataclass
class Task:
    """Encoded training and test sequences.

    Attributes
    ----------
    name : str
    encoder : FeatureEncoder
    labels : list
    train, test : Tokens
    label_ids : int32 array
        Label indices of all training tokens.
    gold : list of label lists
        Of the test sequences.
    chunks : bool
        Whether the labels are chunks, so that F1 means something.
    """

    name: str
    encoder: FeatureEncoder
    labels: list
    train: object
    label_ids: np.ndarray
    test: object
    gold: list
    chunks: bool

    def oracle(self, inference, order=None):
        if inference == "greedy":
            return GreedyOracle(len(self.labels), self.encoder.n_features, order=2 if order is None else order)
        return ViterbiOracle(len(self.labels), self.encoder.n_features)

    def model(self, oracle, weights):
        return SequenceModel(self.encoder, self.labels, oracle, weights=weights)

    def score(self, oracle, weights):
        """Test accuracy, and chunk F1 if there are chunks, as fractions."""
        model = self.model(oracle, weights)
        predicted = model.split(model.predict_tokens(self.test), self.test.offsets)
        f1 = chunk_scores(self.gold, predicted).f1 if self.chunks else None
        return {"accuracy": token_accuracy(self.gold, predicted), "f1": f1}


def text_task(name, templates, min_count, *, share=1.0):
    """A task on column files; `share` < 1 selects the first sentences only, for trials."""
    data = FETCH[name]()
    train, test = (head(read_columns(path), share) for path in (data.train_path, data.test_path))
    encoder = FeatureEncoder(templates, min_count)
    tokens = encoder.fit_transform(train.drop_last())
    labels, label_ids = encode_labels(train.select([-1]), tokens)
    return Task(
        name,
        encoder,
        labels,
        tokens,
        label_ids,
        encoder.transform(test.drop_last()),
        test.column(-1),
        chunks=any(label.startswith("B-") for label in labels),
    )


def head(sequences, share):
    """The first sequences, as a share of all."""
    return sequences if share == 1.0 else sequences[: int(share * len(sequences))]


def default_settings(**changes):
    """The command line's settings, with `random_state` fixed; `changes` are named as for SequenceLabeler."""
    return SimpleNamespace(**DEFAULTS | {"random_state": SEED} | changes)


def default_solver(**changes):
    """The solver of the command line with these settings."""
    return make_solver(default_settings(**changes))


# ---- training ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """A finished run, and its seconds from encoded features to weights.

    Attributes
    ----------
    run : Run
    oracle : ViterbiOracle or GreedyOracle
    laps : ndarray of shape (n_iter, 2)
        Wall and CPU seconds to the end of each pass; the certificate of a solver that has no `tol` comes
        after the last one.
    """

    run: object
    oracle: object
    laps: np.ndarray

    @property
    def wall(self):
        return float(self.laps[-1, 0])

    @property
    def cpu(self):
        return float(self.laps[-1, 1])


class Stopwatch(Monitor):
    """Records the time at the end of each pass, without that of another monitor."""

    def __init__(self, monitor=None):
        self.monitor = Monitor() if monitor is None else monitor
        self.start = self.now()
        self.laps = []

    def now(self):
        return np.array([time.perf_counter(), time.process_time()])

    def end_pass(self, run):
        self.laps.append(self.now() - self.start)
        stop = self.monitor.end_pass(run)
        self.start = self.now() - self.laps[-1]
        return stop


def train(oracle, tokens, label_ids, solver, monitor=None):
    """Train from encoded features; the seconds do not include those of `monitor`."""
    with no_gc():
        watch = Stopwatch(monitor)
        problem = oracle.bind(tokens, label_ids, **solver.formulation())
        run = solver.solve(problem, monitor=watch)
    return Training(run, oracle, np.array(watch.laps))


class StopAtGap(Monitor):
    """Stops when primal - dual is below C, as the thesis's LaRankGap does. (Needs a solver with a tol.)"""

    def __init__(self, gap=C):
        self.gap = gap

    def end_pass(self, run):
        return run.primal - run.dual < self.gap


class StopAtF1(Monitor):
    """Stops when the weights reach an F1 on the test sequences."""

    def __init__(self, task, oracle, f1):
        self.task, self.oracle, self.wanted = task, oracle, f1
        self.f1 = 0.0

    def end_pass(self, run):
        self.f1 = self.task.score(self.oracle, run.weights)["f1"]
        return self.f1 >= self.wanted
