"""Forged training states in model files: each array is checked on load, before anything trains on."""

import warnings

import numpy as np
import pytest

import structsvm
from structsvm import CuttingPlane
from structsvm.checkpoint import RUN, STATES, check_state, kind_of
from structsvm.datasets import make_concept_world, make_sequences
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.tasks import (
    AmbiguousClassifier,
    ConceptLabeler,
    CrammerSingerClassifier,
    GraphLabeler,
    HullerClassifier,
    KernelPerceptronClassifier,
    LaRankClassifier,
    LaSVMClassifier,
    MultilabelClassifier,
    PairwiseClassifier,
    SequenceLabeler,
    SGDQNClassifier,
    TaxonomyClassifier,
    TrackingClassifier,
    WestonWatkinsClassifier,
)

X, Y = make_sequences(8, n_labels=3, n_words=20, mean_length=4.0, random_state=0)
PARTLY = [[None, *labels[1:]] for labels in Y]
POINTS = np.random.default_rng(0).normal(size=(20, 3))
LABELS = np.arange(20) % 3
NAMES = np.array(["a", "b", "c"])[LABELS]
BAGS = [{int(k), int(k + 1) % 3} for k in LABELS]
WORDS, CONCEPTS, WORLDS = make_concept_world(8, random_state=0)
SCENES = list(zip(WORDS, WORLDS, strict=True))
GRAPHS = [(POINTS[5 * k : 5 * k + 5], [(0, 1), (1, 2), (2, 0)]) for k in range(3)]
SEEDED = {"max_iter": 2, "random_state": 0}

# Every kind of training state: what trains, and on what.
TRAINED = {
    "dual": (SequenceLabeler(C=0.1, loss="hamming", **SEEDED), X, Y),
    "dual, latent": (SequenceLabeler(C=0.1, loss="hamming", **SEEDED), X, PARTLY),
    "expectations, latent": (SequenceLabeler(C=0.1, loss="log", **SEEDED), X, PARTLY),
    "dual, graphs": (GraphLabeler(C=0.1, **SEEDED), GRAPHS, LABELS[:15].reshape(3, 5)),
    "dual, bags": (AmbiguousClassifier(C=0.1, loss="max", **SEEDED), POINTS, BAGS),
    "dual, label sets": (MultilabelClassifier(C=0.1, **SEEDED), POINTS, BAGS),
    "one_slack": (SequenceLabeler(solver=CuttingPlane(C=0.1, form="one_slack", max_iter=3)), X, Y),
    "weights": (SequenceLabeler(solver="perceptron", **SEEDED), X, Y),
    "expectations": (SequenceLabeler(C=0.1, loss="log", **SEEDED), X, Y),
    "kernel_dual": (LaRankClassifier(**SEEDED), POINTS, LABELS),
    "kernel_dual, taxonomy": (TaxonomyClassifier(C=0.1, kernel="rbf", **SEEDED), POINTS, NAMES),
    "kernel_perceptron": (KernelPerceptronClassifier(**SEEDED), POINTS, LABELS),
    "full_gradient": (CrammerSingerClassifier(**SEEDED), POINTS, LABELS),
    "pairwise": (PairwiseClassifier(1.0, gamma=0.1), POINTS, LABELS),
    "weston_watkins": (WestonWatkinsClassifier(max_iter=3), POINTS, LABELS),
    "lasvm": (LaSVMClassifier(**SEEDED), POINTS, LABELS > 0),
    "huller": (HullerClassifier(**SEEDED), POINTS, LABELS > 0),
    "descent": (SGDQNClassifier(**SEEDED), POINTS, LABELS),
    "concepts": (ConceptLabeler(**SEEDED), SCENES, CONCEPTS),
    "tracking": (TrackingClassifier(**SEEDED), POINTS, LABELS > 0),
}


@pytest.fixture(scope="module", params=TRAINED)
def trained(request, tmp_path_factory):
    """A model file, its training state, and the table of that."""
    estimator, *data = TRAINED[request.param]
    path = tmp_path_factory.mktemp("models") / "sound.model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(*data).save(path)
    state = read_model(path).under("state.")
    kind = request.param.partition(",")[0]
    assert kind_of(state) == kind
    return path, state, RUN | STATES[kind]


def forgeries(array, wanted):
    """Arrays that the table does not allow in an array's place; None: nothing at all."""
    yield array[None]
    yield array.astype("<c16")
    if wanted.needed:
        yield None
    if array.dtype.kind == "f" and wanted.finite and array.size:
        yield np.full_like(array, np.nan)
        yield np.full_like(array, -np.inf)
    low, high = wanted.within
    if low is not None and array.size:
        yield np.full_like(array, np.iinfo(array.dtype).min if array.dtype.kind == "i" else -1)
        if high is not None and array.dtype.kind == "i":
            yield np.full_like(array, np.iinfo(array.dtype).max)
    if wanted.once and len(array) > 1:
        yield np.full_like(array, array[0])
    if wanted.rises_to is not None and array[-1] > 0:
        yield np.where(np.arange(len(array)) > 0, array[::-1], 0)
        yield array + 1
    if array.shape and any(isinstance(size, int) for size in wanted.shape):
        yield np.concatenate([array, array], axis=[isinstance(size, int) for size in wanted.shape].index(True))


def test_every_array_of_a_state_is_described_and_checked(trained):
    path, state, table = trained
    assert set(state) <= set(table)
    sizes = structsvm.load(path)._fitted().state_sizes()
    check_state(state, **sizes)
    for name, array in state.items():
        for k, forgery in enumerate(forgeries(array, table[name])):
            if name == "run" and forgery is None:  # the state of a batch has none
                continue
            forged = {key: value for key, value in (state | {name: forgery}).items() if value is not None}
            with pytest.raises(ValueError, match=rf"^training state: array '{name}' |as uint8 numbers") as caught:
                check_state(forged, **sizes)
            assert name in str(caught.value), k


def test_a_forged_state_is_found_by_load(trained, tmp_path):
    path, state, _ = trained
    file = read_model(path)
    for name in ("random", "support") if "random" in state else ("support", "beta"):
        if name in state:
            write_model(tmp_path / "a", file.kind, file.meta, file.arrays | {f"state.{name}": state[name][None]})
            with pytest.raises(ModelFileError, match=rf"a: not a sound \w+ model: training state: array '{name}' has"):
                structsvm.load(tmp_path / "a")


def test_a_state_of_labels_is_none_of_sequences(tmp_path):
    TRAINED["kernel_dual"][0].fit(POINTS, LABELS).save(tmp_path / "classes")
    TRAINED["dual"][0].fit(X, Y).save(tmp_path / "sequences")
    file, other = read_model(tmp_path / "sequences"), read_model(tmp_path / "classes")
    arrays = {name: array for name, array in file.arrays.items() if not name.startswith("state.")}
    states = {name: array for name, array in other.arrays.items() if name.startswith("state.")}
    write_model(tmp_path / "forged", file.kind, file.meta, arrays | states)
    with pytest.raises(ModelFileError, match="a training state of kind 'kernel_dual', which has 'n_labels', unlike"):
        structsvm.load(tmp_path / "forged")


def test_states_of_other_projects_are_left_alone():
    foreign = {"kind": np.frombuffer(b"theirs", dtype=np.uint8), "anything": np.array([np.nan])}
    check_state(foreign)
    with pytest.raises(ValueError, match="training state: array 'run' has shape"):
        check_state(foreign | {"run": np.zeros(3)})
