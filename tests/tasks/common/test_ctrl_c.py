"""Ctrl-C in the middle of kernels, in any phase of any task: it comes out, and the estimator is as usable as before."""

import signal
import threading
from functools import cache

import numpy as np
import pytest

from structsvm import tasks
from structsvm.datasets import (
    make_alignment,
    make_ambig_house,
    make_concept_world,
    make_dependency_trees,
    make_sequences,
    make_treebank,
)
from structsvm.execution._stop import look_every, looks

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(300, 30))
CLASSES = np.argmax(ROWS[:, :4] + 0.3 * rng.normal(size=(300, 4)), axis=1)
WORDS, TAGS = make_sequences(60, n_labels=5, n_words=100, mean_length=8.0, random_state=0)
TREES = make_treebank(30, max_length=8, random_state=0)
GRIDS = list(np.random.default_rng(0).normal(size=(40, 10, 10, 3)))
SENTENCES = make_dependency_trees(12, max_length=12, random_state=0)
PAIRS = make_alignment(10, random_state=0)
HOUSE = make_ambig_house(30, 1, random_state=0)
SPOKEN, CONCEPTS, WORLDS = make_concept_world(40, random_state=0)
SCENES = list(zip(SPOKEN, WORLDS, strict=True))

# The estimator, its data, what it predicts for, and whether it returns the k best outputs, too.
CASES = {
    "sequence": (tasks.SequenceLabeler, {"C": 0.1, "random_state": 0}, WORDS, TAGS, WORDS, True),
    "cutting plane": (
        tasks.SequenceLabeler,
        {"solver": "cutting_plane", "C": 0.1, "max_iter": 5, "random_state": 0},
        WORDS,
        TAGS,
        WORDS,
        True,
    ),
    "segments": (tasks.SequenceLabeler, {"segments": True, "C": 0.1, "random_state": 0}, WORDS, TAGS, WORDS, True),
    "grammar": (
        tasks.GrammarParser,
        {"C": 0.1, "random_state": 0},
        TREES,
        None,
        [tree.tokens() for tree in TREES],
        True,
    ),
    "dependency": (tasks.DependencyParser, {"C": 0.1, "random_state": 0}, SENTENCES, None, SENTENCES, True),
    "graph": (
        tasks.GraphLabeler,
        {"C": 0.1, "random_state": 0},
        GRIDS,
        [np.arange(100).reshape(10, 10) % 3] * 40,
        GRIDS,
        False,
    ),
    "alignment": (tasks.SequenceAligner, {"random_state": 0}, PAIRS.X, PAIRS.y, PAIRS.X, True),
    "taxonomy": (tasks.TaxonomyClassifier, {"random_state": 0}, ROWS, CLASSES, ROWS, False),
    "ambiguous": (
        tasks.AmbiguousClassifier,
        {"standardize": False, "random_state": 0},
        ROWS,
        [{c} for c in CLASSES],
        ROWS,
        False,
    ),
    "log loss of bags": (
        tasks.AmbiguousClassifier,
        {"loss": "log", "C": 0.1, "random_state": 0},
        ROWS,
        [{c, "b"} for c in CLASSES],
        ROWS,
        False,
    ),
    "semantics": (tasks.SemanticParser, {"random_state": 0}, HOUSE.sentences, HOUSE.bags, HOUSE.sentences, False),
    "concepts": (tasks.ConceptLabeler, {"random_state": 0}, SCENES, CONCEPTS, SCENES, False),
    "larank": (tasks.LaRankClassifier, {"gamma": 0.1, "random_state": 0}, ROWS, CLASSES, ROWS, False),
    "lasvm": (tasks.LaSVMClassifier, {"gamma": 0.1, "random_state": 0}, ROWS, CLASSES > 1, ROWS, False),
    "huller": (tasks.HullerClassifier, {"gamma": 0.1, "random_state": 0}, ROWS, CLASSES > 1, ROWS, False),
    "crammer singer": (
        tasks.CrammerSingerClassifier,
        {"gamma": 0.1, "random_state": 0},
        ROWS,
        CLASSES,
        ROWS,
        False,
    ),
    "pairwise": (tasks.PairwiseClassifier, {"gamma": 0.1}, ROWS, CLASSES, ROWS, False),
    "weston watkins": (tasks.WestonWatkinsClassifier, {"gamma": 0.1}, ROWS, CLASSES, ROWS, False),
    "ranker": (tasks.Ranker, {"C": 1.0, "random_state": 0}, ROWS, CLASSES, ROWS, False),
    "multilabel": (
        tasks.MultilabelClassifier,
        {"C": 1.0, "random_state": 0},
        ROWS,
        np.eye(5, dtype=int)[CLASSES % 5],
        ROWS,
        False,
    ),
    "multivariate": (tasks.MultivariateClassifier, {"C": 1.0, "random_state": 0}, ROWS, CLASSES > 1, ROWS, False),
    "sgdqn": (tasks.SGDQNClassifier, {"random_state": 0}, ROWS, CLASSES, ROWS, False),
}
PHASES = [
    pytest.param(name, phase, n_jobs, id=f"{name}, {phase}, {n_jobs}")
    for name, case in CASES.items()
    for phase in ("fit", "predict", "predict_kbest")
    for n_jobs in (1, 2)
    if phase != "predict_kbest" or case[5]
]


@pytest.fixture(autouse=True)
def _afterwards():
    yield
    look_every()


def repeat(call, thread):
    thread.start()
    while True:
        call()


def interrupted(call, n):
    """Repeat a call until a Ctrl-C comes out, which is sent after n looks, or soon where kernels are short."""
    main, pause = threading.main_thread().ident, threading.Event()

    def send(start):
        for _ in range(200):
            if looks() >= start + n:
                break
            pause.wait(1e-4)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=send, args=(looks(),))
    with pytest.raises(KeyboardInterrupt):
        repeat(call, thread)
    thread.join()


@cache
def trained(name):
    """A fitted estimator: a prediction needs no choice of C."""
    kind, params, X, y, *_ = CASES[name]
    model = kind(**params)
    return (model.set_params(C=0.1) if "C" in model.get_params() else model).fit(X, y)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals of threads")
@pytest.mark.parametrize(("name", "phase", "n_jobs"), PHASES)
def test_ctrl_c(name, phase, n_jobs):
    kind, params, X, y, inputs, _ = CASES[name]
    if phase == "fit":  # the choice of C is interrupted below
        params = {"C": 0.1} | params if "C" in kind().get_params() else params
        model = kind(**params, n_jobs=n_jobs).fit(X, y)
    else:
        model = trained(name).set_params(n_jobs=n_jobs)
    said = repr([*model.predict(inputs)])
    calls = {
        "fit": lambda: model.fit(X, y),
        "predict": lambda: model.predict(inputs),
        "predict_kbest": lambda: model.predict_kbest(inputs, 3),
    }
    for n in (1, 50):
        look_every(500)
        interrupted(calls[phase], n)
        look_every()
        assert len([*model.predict(inputs)]) == len(inputs)
        if phase == "fit":
            model.fit(X, y)
        assert repr([*model.predict(inputs)]) == said


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"semantics"}))  # whose steps are too short to look
def test_a_fit_is_interrupted_at_any_look(name):
    """An interrupted fit leaves a usable model, and a fit from the start is as it would have been."""
    kind, params, X, y, inputs, _ = CASES[name]
    model = kind(**params)
    look_every(300, count := Count())
    model.fit(X, y)
    total, said = count.n, repr([*model.predict(inputs)])
    assert total >= 3
    for n in sorted({1, 2, *range(total // 7, total, total // 7 + 1)}):
        look_every(300, Count(n))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        look_every()
        assert len([*model.predict(inputs)]) == len(inputs)
    model.fit(X, y)
    assert repr([*model.predict(inputs)]) == said


class Count:
    """Counts looks; Ctrl-C at the n-th."""

    def __init__(self, n=None):
        self.n, self.last = 0, n

    def __call__(self):
        self.n += 1
        if self.n == self.last:
            raise KeyboardInterrupt
