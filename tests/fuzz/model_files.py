"""Model files of every kind and of every part that they may have; mutants have right checksums."""

from __future__ import annotations

import copy
import json
import os
import random
import struct
import tempfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from cases import TABLE, tokens_of
from forgeries import forged_headers
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

import structsvm
from structsvm import LaRank, LatentSVM
from structsvm.adapter import OracleError
from structsvm.datasets import make_concept_world, make_dependency_trees, make_sequences, make_treebank
from structsvm.model_file import ALIGN, MAGIC, ModelFileError, read_model
from structsvm.stored_values import Record
from structsvm.structures.trees import Tree
from structsvm.tasks import (
    AmbiguousClassifier,
    ArcFeatures,
    ConceptLabeler,
    DependencyParser,
    GrammarParser,
    GraphLabeler,
    Hybrid,
    LaRankClassifier,
    MultilabelClassifier,
    MultivariateClassifier,
    PairwiseClassifier,
    Ranker,
    SemanticParser,
    SequenceLabeler,
    SGDQNClassifier,
    SpanFeatures,
    TaxonomyClassifier,
    TokenFeatures,
    TrackingClassifier,
    TreebankGrammar,
)

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None

INTEGERS = [-1, 0, 1, 2, 7, 127, 255, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-300, 5e-324, 1e30, 1e38, -1e38, 1e154, 1e308, -1e308]
NUMBERS = [*INTEGERS, *FLOATS, 10**30, 10**400, 2**63, 2**64, True, False, None]
STRINGS = ["", "a", "\0", "\ud800", "a" * 5000, "(a+)+$", "/etc/passwd", "filename", "nan", "[", "'", "{", "None", "é"]
STATES = ("state.", "history.", "symbols.", "roles.")
DTYPES = ["|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c16", "|S3"]


@dataclass(frozen=True)
class Original:
    """A model file: its header (JSON) and arrays, what it predicts for and is trained on, what `load` takes beside it,
    and its record.

    With training come the arguments of `fit` beside X and y, of a checkpoint its estimator.
    """

    name: str
    header: bytes
    arrays: dict[str, np.ndarray]
    test: Any
    training: tuple[Any, Any, Any]
    load: dict[str, Any]
    record: Record | None
    data: bytes


# ---- seeds --------------------------------------------------------------------------------------


def seeds() -> list[Original]:
    """The model of each case of the table of estimators, and those of parts that these do not have."""
    return [
        *(of_training(name, case.make(), case.X, case.y, case.load) for name, case in TABLE.items()),
        *(of_training(type(model).__name__, model, *data) for model, *data in trainings()),
        *(of_training(f"small {name}", *data, training_state=False) for name, *data in small_ones()),
    ]


def of_training(name: str, model: Any, X: Any, y: Any, load: Any = None, *, training_state: bool = True) -> Original:
    """The file of a model that is trained on X and y."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "a.model"
        model.fit(X, y, **about(model, X)).save(path, training_state=training_state)
        test = [tokens_of(tree) for tree in X[:3]] if y is None and isinstance(model, GrammarParser) else X[:3]
        record = model._fitted().record if hasattr(model, "_fitted") else None
        return original(name, path, test, (X, y, about(model, X)), load or {}, record)


def about(model: Any, X: Any) -> dict[str, Any]:
    """Keywords that `fit` needs beside X and y: the rows of a ranker are of one query."""
    return {"group": [len(X)]} if isinstance(model, Ranker) else {}


def small_ones() -> Iterator[tuple[str, Any, Any, Any]]:
    """Estimators whose files leave out weights that are 0, and names without weight."""
    X, y = make_sequences(40, n_labels=3, n_words=60, mean_length=4.0, random_state=0)
    dicts = [[{"w": word[0], "n": str(len(word[0]))} for word in words] for words in X]
    yield "columns", SequenceLabeler(max_iter=2, random_state=0), X, y
    yield "dicts", SequenceLabeler(max_iter=2, random_state=0), dicts, y
    yield "segments", SequenceLabeler(segments=True, max_iter=2, random_state=0), X, y


def trainings() -> Iterator[tuple[Any, Any, Any]]:
    """Estimators with parts that the cases do not have, and what they are trained on."""
    X, y = make_sequences(24, n_labels=3, n_words=20, mean_length=4.0, random_state=0)
    partly = [[None if k % 5 == 0 else {"O", label} if k % 5 == 1 else label for k, label in enumerate(s)] for s in y]
    weighted = [[{"O": 0.25, "B-NP": 0.75} if k == 0 else label for k, label in enumerate(labels)] for labels in y]
    trees, crossing = (make_dependency_trees(24, max_length=6, crossing=p, random_state=0) for p in (0.0, 1.0))
    labels = np.random.default_rng(0).integers(0, 3, 24)
    points = np.random.default_rng(1).normal(size=(24, 2)) + labels[:, None]
    sets = [{int(k), (int(k) + i) % 3} for i, k in enumerate(labels)]
    names = ["ohio", "texas", "new york"]
    questions = [f"{about} of {name}" for about in ("size", "the capital") for name in names]
    meanings = [f"{about}(state('{name}'))" for about in ("size", "capital(loc)") for name in names]
    meanings = [meaning.replace("loc)(", "loc(") + ")" * ("loc" in meaning) for meaning in meanings]
    grammar = (
        "S -> size ( @T )\nS -> capital ( loc ( @T ) )\nT -> state ( @N )\nN -> 'ohio'\nN -> 'texas'\nN -> 'new york'"
    )
    lexicon = {"new york": "state('new york')", "lone star": "state('texas')", "guam": "state('guam')"}
    phrases = make_treebank(12, max_length=6, random_state=0)
    tokens = [tree.tokens() for tree in phrases]
    part_trees = [tree if k < 8 else tree.map(unlabelled) for k, tree in enumerate(phrases)]
    once = {"max_iter": 2, "random_state": 0}
    bits = {"features": ArcFeatures(arc_bits=6, row_bits=3)}
    yield SequenceLabeler(C=0.1, templates="U:%x[0,0]\nB\nB0:%x[0,0]/%x[1,1]\n", **once), X, y
    yield SequenceLabeler(C=0.1, features=TokenFeatures(bigrams=X[0][1][1]), **once), X, y
    yield SequenceLabeler(**once), X, y
    yield SequenceLabeler(segments=True, C=0.1, templates="rich", **once), X, [[(0, len(s), "a")] for s in y]
    yield SequenceLabeler(C=0.1, **once), X, partly
    yield SequenceLabeler(C=0.1, loss="hamming", solver="larank", **once), X, partly
    yield SequenceLabeler(C=0.1, loss="log", **once), X, weighted
    yield SequenceLabeler(C=0.1, **once), [points[:4], points[4:]], [labels[:4].tolist(), labels[4:].tolist()]
    yield DependencyParser(**once, **bits), trees, None
    yield DependencyParser(C=0.1, loss="log", projective=False, **once, **bits), crossing, None
    path, ring = [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]
    graphs = [(points[3 * k : 3 * k + 3], (path, ring)[k % 2]) for k in range(8)]
    linked = [(nodes, edges, points[: len(edges)]) for nodes, edges in graphs]
    worded = [([{"x": x, f"w{k}": 1.0} for k, x in enumerate(nodes[:, 0])], edges) for nodes, edges in graphs]
    yield GraphLabeler(C=0.1, probability=True, **once), graphs, list(labels.reshape(8, 3))
    hidden = [[{"a", "b"}, int(k) if k else None, 2] for k in labels[:8]]
    yield GraphLabeler(C=0.1, **once), graphs, hidden
    yield GraphLabeler(C=0.1, method="cut", neighbours=8, **once), list(points.reshape(6, 2, 2, 2)), list(
        labels.reshape(6, 2, 2) > 0
    )  # fmt: skip
    yield SemanticParser(method="hybrid", **once), questions, meanings
    yield SemanticParser(method=Hybrid(abstain_below=0.1), grammar=grammar, **once), questions, meanings
    yield SemanticParser(method=Hybrid(lexicon=lexicon), **once), questions, meanings
    yield SemanticParser(method=Hybrid(solver="perceptron", features=["shape", "inside"]), **once), questions, meanings
    yield SemanticParser(method=Hybrid(solver="larank"), **once), questions, meanings
    yield SemanticParser(method=Hybrid(solver="larank", loss="f1"), **once), questions, meanings
    yield GrammarParser(C=0.1, terminals="both", features=SpanFeatures(bits=6), **once), tokens, phrases
    annotated = {"grammar": TreebankGrammar(v=2), "features": SpanFeatures(bits=4)}
    yield GrammarParser(C=0.1, loss="log", terminals="words", **annotated, **once), tokens, part_trees
    yield SequenceLabeler(solver=LatentSVM(LaRank(C=0.1, **once), rounds=3)), X, partly
    yield AmbiguousClassifier(C=0.1, loss="max", **once), points, sets
    yield PairwiseClassifier(C=1.0, tol=1e-12, max_iter=3), points, labels
    yield SGDQNClassifier(random_state=0), points * [1.0, 1e4], labels
    yield TrackingClassifier(random_state=0), points * [1.0, 1e4], labels > 0
    yield PairwiseClassifier(kernel="linear", probability=True), points, labels > 0
    yield LaRankClassifier(kernel="rbf", probability=True, random_state=0), points, labels
    yield AmbiguousClassifier(random_state=0), points, sets
    yield MultilabelClassifier(C=0.1, interactions="tree", **once), points, sets
    yield MultilabelClassifier("f1", C=0.1, interactions="none", **once), points, sets
    yield (
        MultilabelClassifier("subset", C=0.1, interactions="full", fit_intercept=False, **once),
        points,
        [*sets[:23], None],
    )
    yield GraphLabeler(C=0.1, method="relaxed", interactions="symmetric", **once), graphs, list(labels.reshape(8, 3))
    yield (
        GraphLabeler(C=0.1, loss="log", method="junction", interactions="associative", **once),
        worded,
        list(labels.reshape(8, 3)),
    )
    yield GraphLabeler(C=0.1, method="expansion", interactions="full", **once), linked, list(labels.reshape(8, 3))
    yield (
        SequenceLabeler(segments=True, C=0.1, loss="log", **once),
        X,
        [[(k, k + 1, "ab"[k % 2]) for k in range(len(s))] for s in y],
    )
    yield Ranker("pairs", C=0.1, **once), points, labels
    yield Ranker("ndcg", k=3, C=0.1, solver="cutting_plane", **once), points, labels
    yield MultivariateClassifier("f1", C=0.1, **once), points, labels > 0
    yield MultivariateClassifier("prec_at_k", k=5, C=0.1, solver="larank", **once), points, labels > 0
    yield MultivariateClassifier(max_iter=3, random_state=0), points, labels > 0
    yield SequenceLabeler(solver=LaRank(C=0.1, **once)), X, y
    documents = ["sun rain", "rain snow wind", "wind"] * 8
    yield TaxonomyClassifier(vectorizer=TfidfVectorizer(), C=1.0, **once), documents, labels
    taxonomy = [("all", "0"), ("all", "few"), ("few", "1"), ("few", "2")]
    nodes = labels.astype(str)
    yield TaxonomyClassifier(taxonomy=taxonomy, loss="path", attributes="normalized", C=1.0, **once), points, nodes
    yield TaxonomyClassifier(taxonomy=taxonomy, leaf_only=False, loss="log", C=1.0, **once), points, nodes
    words, concepts, worlds = make_concept_world(10, random_state=0)
    yield ConceptLabeler(dimension=3, hidden=4, window=1, **once), list(zip(words, worlds, strict=True)), concepts


def unlabelled(node: Tree, children: Any) -> Tree:
    """A node whose label is not known, but for tags."""
    return node if node.is_preterminal else Tree("_", children)


def original(name: str, path: Path, test: Any, training: Any, load: Any, record: Any = None) -> Original:
    """A seed of a file."""
    data = path.read_bytes()
    length = struct.unpack_from("<I", data, 8)[0]
    header = data[16 : 16 + length]
    arrays = {key: np.array(array) for key, array in read_model(path).arrays.items()}
    return Original(name, header, arrays, test, training, load, record, data)


def checkpoints() -> list[Original]:
    """The checkpoints of a run of each solver, and of each part."""
    X, y = make_sequences(12, n_labels=3, n_words=20, mean_length=4.0, random_state=1)
    options, found = {"C": 0.5, "tol": None, "random_state": 0}, []
    solvers = ("larank", "cutting_plane", "frank_wolfe", "passive_aggressive")
    of_solvers = [(SequenceLabeler(solver=solver, **options), X, y) for solver in solvers]
    for model, *data in chain(of_solvers, trainings()):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder) / "a.checkpoint"
            checkpointed(model, path, 3).fit(*data, **about(model, data[0]))
            if path.exists():
                found.append(original(type(model).__name__, path, None, (*data, model), {}))
    return found


def checkpointed(model: Any, path: Any, max_iter: int) -> Any:
    """The estimator, with a checkpoint and so many passes: of its solver, where that is an object."""
    base = next(base for base in ("solver__solver__", "solver__", "") if f"{base}checkpoint" in model.get_params())
    return model.set_params(**{f"{base}checkpoint": path, f"{base}max_iter": max_iter})


# ---- mutants ------------------------------------------------------------------------------------


def encode(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """A model file of any header and arrays, with right checksums."""
    table, chunks, end = [], [], 0
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        offset = -(-end // ALIGN) * ALIGN
        entry = {"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "offset": offset}
        table.append(entry | {"crc32": zlib.crc32(raw)})
        chunks += [bytes(offset - end), raw]
        end = offset + len(raw)
    text = json.dumps(header | {"arrays": table}).encode()
    text += b" " * (-(16 + len(text)) % ALIGN)
    length = struct.pack("<I", len(text))
    return MAGIC + length + struct.pack("<I", zlib.crc32(text, zlib.crc32(length))) + text + b"".join(chunks)


def mutate(rng: random.Random, seed: Original) -> bytes:
    """A mutant: one to three changes to arrays or the header, seldom to the bytes."""
    if rng.random() < 0.03:
        return damaged(rng, seed.data)
    header, arrays = json.loads(seed.header), dict(seed.arrays)
    if rng.random() < 0.7:  # training states have mutants of their own
        arrays = {name: array for name, array in arrays.items() if not name.startswith("state.")} or arrays
    if seed.record is not None and rng.random() < 0.2:
        header["meta"] = rng.choice([forged for _, forged in forged_headers(seed.record, header["meta"])])
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.55:
            change_arrays(rng, arrays)
        else:
            change_json(rng, header["meta"] if "meta" in header and rng.random() < 0.97 else header)
    return encode(header, arrays)


def mutate_state(rng: random.Random, seed: Original) -> bytes:
    """A mutant of the training state alone, where there is one."""
    header, arrays = json.loads(seed.header), dict(seed.arrays)
    state = {name: array for name, array in arrays.items() if name.startswith(STATES)}
    for _ in range(rng.choice((1, 1, 2))):
        change_arrays(rng, state)
    return encode(header, {name: array for name, array in arrays.items() if not name.startswith(STATES)} | state)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Bytes that are lost, flipped or added, with wrong checksums."""
    place = rng.randrange(len(data))
    match rng.randrange(4):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]
        case 2:
            return data + rng.randbytes(rng.choice((1, 64, 100)))
        case _:
            return data[:place] + rng.randbytes(8) + data[place + 8 :]


def change_arrays(rng: random.Random, arrays: dict[str, np.ndarray]) -> None:
    """Change one array, or which there are."""
    if not arrays:
        return
    name, other = rng.choices(list(arrays), k=2)
    array = arrays[name]
    match rng.randrange(12):
        case 0:
            arrays[name], arrays[other] = arrays[other], arrays[name]
        case 1:
            del arrays[name]
        case 2:
            arrays[rng.choice((name + "x", "x", name.partition(".")[0], name + ".x"))] = arrays[other]
        case 3:
            is_text = array.dtype.kind == "S"  # text need not be numbers
            arrays[name] = array.astype("|S1" if is_text else rng.choice(DTYPES)) if array.size < 1 << 16 else array
        case 4:
            arrays[name] = reshaped(rng, array)
        case 5 | 6:
            arrays[name] = resized(rng, array)
        case _:
            arrays[name] = revalued(rng, array)


def reshaped(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """The same numbers in another shape."""
    shapes = [(1, *array.shape), (*array.shape, 1), (array.size,), array.shape[::-1], (0, *array.shape[1:])]
    shape = rng.choice(shapes)
    return array.reshape(shape) if np.prod(shape) == array.size else np.zeros(shape, array.dtype)


def resized(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """With fewer or more numbers."""
    if array.ndim == 0 or len(array) == 0:
        return np.zeros((3,), array.dtype)
    axis = rng.randrange(array.ndim)
    n = array.shape[axis]
    if n == 0:
        return array
    places = rng.choice(
        (range(n - 1), range(1, n), [*range(n), n - 1], [*range(n), 0], [], [0], list(range(n)) * 2, range(n)[::-1])
    )
    return np.take(array, list(places), axis=axis).astype(array.dtype)


def revalued(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """With other numbers."""
    array = array.copy()
    flat = array.reshape(-1)
    if flat.size == 0:
        return array
    place = rng.randrange(flat.size)
    if array.dtype.kind in "iu":
        low, high = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        value = rng.choice([*INTEGERS, flat.size, flat.size - 1, int(flat.max()), int(flat.max()) + 1, int(flat[0])])
        value = min(max(value, low), high)
    elif array.dtype.kind == "f":
        value = rng.choice([*FLOATS, np.nan, np.inf, -np.inf])
    else:
        value = rng.choice((0, 1)) if array.dtype.kind == "b" else 0
    with np.errstate(all="ignore"):
        match rng.randrange(9):
            case 0 | 1 | 2:
                flat[place] = value
            case 3:
                flat[-1] = value
            case 4:
                flat[place:] = value
            case 5:
                flat[:] = value
            case 6:
                flat[place:] += flat.dtype.type(rng.choice((1, 1, 2, 100))) if array.dtype.kind != "b" else True
            case 7:
                flat[:] = flat[[rng.randrange(flat.size) for _ in range(flat.size)]]
            case _:
                flat[:] = np.sort(flat) if rng.random() < 0.5 else flat[::-1].copy()
    return array


def change_json(rng: random.Random, root: Any) -> None:
    """Change one value of a tree of JSON."""
    places = list(_places(root))
    if not places:
        return
    parent, key = rng.choice(places)
    if rng.random() < 0.12 and isinstance(parent, dict):
        if rng.random() < 0.5:
            del parent[key]
        else:
            parent[rng.choice((key + "x", *STRINGS))] = copy.deepcopy(parent[key])
        return
    parent[key] = changed_value(rng, parent[key], places)


def changed_value(rng: random.Random, value: Any, places: list[Any]) -> Any:
    """Another value in a place."""
    if rng.random() < 0.1:
        parent, key = rng.choice(places)
        return copy.deepcopy(parent[key])
    if rng.random() < 0.1:
        return rng.choice((*NUMBERS, *STRINGS, [], {}, [[]], {"tuple": []}, {"tuple": 1}, {"weights": [[1, 2]]}))
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)) or value is None:
        if value is not None and rng.random() < 0.3:
            return value + rng.choice((-1, 1, 2))
        return rng.choice(NUMBERS)
    if isinstance(value, str):
        place = rng.randrange(len(value) + 1)
        return rng.choice((*STRINGS, value[:place], value[:place] + rng.choice(STRINGS) + value[place:], value * 2))
    if isinstance(value, list):
        if not value:
            return [rng.choice((*NUMBERS, *STRINGS))]
        place = rng.randrange(len(value))
        shuffled = rng.sample(value, len(value))
        return rng.choice((
            [], value[:place], value[place:], value + value, value[:place] + value[place + 1 :], shuffled,
            [*value, value[place]], [value],
        ))  # fmt: skip
    return rng.choice(({}, [value], None, {**value, "x": 1}, dict(list(value.items())[1:])))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


# ---- reading ------------------------------------------------------------------------------------


def read(data: bytes, seed: Original) -> str:
    """Open a mutant and predict with it: ModelFileError, a ValueError of prediction, or predictions."""
    with stored(data) as path:
        try:
            model = structsvm.load(path, **seed.load)
        except ModelFileError:
            return "ModelFileError"
        try:
            use(model, seed.test)
        except ValueError:
            return "ValueError of prediction"
        return "predicts"


def resume(data: bytes, seed: Original) -> str:
    """Open a mutant and train it further: ModelFileError, a ValueError of training, or a model that predicts."""
    with stored(data) as path:
        try:
            model = structsvm.load(path, **seed.load)
        except ModelFileError:
            return "ModelFileError"
    X, y, options = seed.training
    warm = "warm_start" in model.get_params()
    if warm:
        model.set_params(warm_start=True)
    elif not hasattr(model, "partial_fit"):
        return "cannot be trained further"
    try:
        getattr(model, "fit" if warm else "partial_fit")(*((X,) if y is None else (X, y)), **options)
        use(model, seed.test)
    except ValueError:
        return "ValueError of training"
    return "is trained further"


def read_checkpoint(data: bytes, seed: Original) -> str:
    """Go on from a mutant of a checkpoint: ModelFileError, a model, or a certificate that contradicts itself."""
    X, y, model = seed.training
    with stored(data) as path:
        try:
            checkpointed(clone(model), path, 4).fit(X, y, **about(model, X))
        except ModelFileError:
            return "ModelFileError"
        except OracleError as error:  # multipliers were changed to other possible ones
            if "checkpoint or model file that was changed" not in str(error):
                raise
            return "OracleError"
        except ValueError as error:
            # Scores, or a network.
            if "overflow" not in str(error) and "weights are not finite" not in str(error):
                raise
            return "ValueError of training"
    return "goes on"


@contextmanager
def stored(data: bytes) -> Iterator[str]:
    """A file of these bytes, for as long as it is looked at."""
    path = os.path.join(MEMORY or tempfile.gettempdir(), f"structsvm-fuzz-{os.getpid()}.model")
    with open(path, "wb") as file:
        file.write(data)
    try:
        yield path
    finally:
        if os.path.exists(path):
            os.unlink(path)


def use(model: Any, test: Any) -> None:
    """Ask a model for everything that users ask for."""
    model.predict(test)
    if type(model).__name__ == "SequenceAligner":
        model.decision_function([x for x, _ in test], [[z for _, z in test]] * len(test))
        model.predict_kbest(test, 3)
    elif type(model).__name__ == "GrammarParser":
        list(model.predict_kbest(test, 3))
    elif hasattr(model, "decision_function"):
        model.decision_function(test)
    for name in ("coef_", "intercept_", "classes_", "dual_coef_", "support_vectors_", "nodes_", "n_iter_", "result_"):
        getattr(model, name, None)
    for name in ("validation_", "C_", "gamma_", "symbols_", "relations_", "edge_coef_", "edge_intercept_"):
        getattr(model, name, None)
    if type(model).__name__ in ("DependencyParser", "SemanticParser"):
        list(model.predict_kbest(test, 3))
    if hasattr(model, "predict_proba"):
        list(model.predict_proba(test))
