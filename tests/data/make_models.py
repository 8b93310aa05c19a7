"""Write the model files of `models-0.1.0`, and beside each what version 0.1.0 predicted with it.

It ran once, with structsvm 0.1.0 installed: ``python make_models.py models-0.1.0``. Later versions read the files
(`tests/tasks/common/test_old_model_files.py`); they do not write them anew.

`records.json` has a record per file: the training data `X`, `y` and `options` of `fit`, the inputs `test` with
`predictions` and `scores`, and under `next` what another call gave after the file had been opened again: `fit` with
``warm_start=True`` where the file holds a training state, else `partial_fit`. Data stand in the list `data`, once.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import structsvm
from structsvm import LaRank, StructuredSVM
from structsvm.columns import read_columns
from structsvm.datasets import make_ambig_house, make_treebank
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.tasks import (
    AmbiguousClassifier,
    CrammerSingerClassifier,
    GrammarParser,
    HullerClassifier,
    KernelPerceptronClassifier,
    LaRankClassifier,
    LaSVMClassifier,
    SemanticParser,
    SequenceAligner,
    SequenceLabeler,
    SGDQNClassifier,
    TaxonomyClassifier,
    TrackingClassifier,
    WestonWatkinsClassifier,
)

ORACLE = {"n_labels": 3, "n_token_features": 4, "order": 2, "end": True}
PATHS = [["comp", "mac"], ["comp", "pc"], ["rec", "autos"], ["rec", "motor"]]
NAMES = np.array(["mac", "pc", "autos", "motor"])
TEMPLATES = "U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[0,1]\nB\n"

rng = np.random.default_rng(0)
data, records = [], {}


def encoded(value):
    """As JSON, with what JSON has no name for in an object of one key."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return {"array": value.tolist()}
    if isinstance(value, (list, np.ndarray)):
        return [encoded(v) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [encoded(v) for v in value]}
    if isinstance(value, set):
        return {"set": sorted(value)}
    if isinstance(value, dict) and "columns" not in value:
        return {k: encoded(v) for k, v in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def place(value):
    """Where a value stands in `data`."""
    value = encoded(value)
    if value not in data:
        data.append(value)
    return data.index(value)


def rounded(scores):
    """Nested lists of numbers with nine digits."""
    if isinstance(scores, (list, np.ndarray)):
        return [rounded(s) for s in scores]
    return float(f"{scores:.9g}")


# ---- data ----------------------------------------------------------------------------------------


def phrases(n):
    """Words and tags with BIO labels: what follows a determiner is inside."""
    words = {"DT": ["the", "a"], "NN": ["dog", "cat", "car"], "VB": ["sees", "runs"], "IN": ["on"]}
    sentences, labels = [], []
    for _ in range(n):
        tags = []
        for part in rng.choice(["DT NN", "NN", "VB", "IN"], int(rng.integers(1, 4))):
            tags += part.split()
        sentences.append([(str(rng.choice(words[tag])), tag) for tag in tags])
        before = ["", *tags[:-1]]
        names = {("DT", "NN"): "I-NP"}
        labels.append([names.get((b, t), "B-NP" if t in ("DT", "NN") else "O") for b, t in zip(before, tags)])
    return sentences, labels


def as_dicts(sentences):
    return [[{"word": word, "tag": tag, "length": len(word) / 4.0} for word, tag in s] for s in sentences]


def as_names(sentences):
    return [[[f"w={word}", f"t={tag}"] for word, tag in s] for s in sentences]


def as_arrays(sentences):
    tags = ["DT", "NN", "VB", "IN"]
    return [np.array([[float(tag == t) for t in tags] for _, tag in s]) for s in sentences]


def as_text(sentences):
    return "\n".join("".join(f"{word} {tag}\n" for word, tag in s) for s in sentences)


SENTENCES, LABELS = phrases(12)
TEST = phrases(6)[0]
CENTRES = rng.normal(size=(4, 5))


def rows(n):
    k = rng.integers(0, 4, n)
    return np.round(CENTRES[k] + 0.6 * rng.normal(size=(n, 5)), 2), k


ROWS, KINDS = rows(30)
TEST_ROWS = rows(8)[0]
WORDS = {"mac": "apple disk", "pc": "windows disk", "autos": "car wheel", "motor": "bike wheel"}
TEXTS = [" ".join(rng.permutation([*WORDS[NAMES[k]].split(), *rng.choice(["it", "was", "new"], 2)])) for k in KINDS]
PAIRS = [("ACCAC", "ACAC"), ("CCAAC", "CCAC"), ("ACACA", "ACCA"), ("AACC", "AACCA")]
ALIGNED = [("ACCAC", "A-CAC"), ("CCAAC", "CC-AC"), ("ACACA", "AC-CA"), ("AACC-", "AACCA")]
STRUCTURES = [("HHHHH", "HHHH"), ("EEECC", "EEEC"), ("HHECC", "HHCC"), ("CCEE", "CCEEE")]
CLASSED = [((x, a), (z, b)) for (x, z), (a, b) in zip(PAIRS, STRUCTURES)]
DECOYS = [["GGAC", "GAGA"], ["GGGC", "AGGA"], ["GAGG", "GGC"], ["GCGG", "GGGG"]]
HOUSE = make_ambig_house(10, 1, random_state=0)
TREES = make_treebank(18, max_length=9, random_state=0)


# ---- models --------------------------------------------------------------------------------------


def sequences():
    names, dicts, arrays = as_names(SENTENCES), as_dicts(SENTENCES), as_arrays(SENTENCES)
    text, test = as_text(SENTENCES), as_text(TEST)

    def labeler(**options):
        return SequenceLabeler(**({"C": 0.5, "max_iter": 3, "random_state": 0} | options))

    yield "sequence-attributes", labeler(order=1), names, LABELS, as_names(TEST)
    yield "sequence-dicts-order-2", labeler(order=2, end=True), dicts, LABELS, as_dicts(TEST)
    yield "sequence-arrays-zero-one", labeler(loss="zero_one"), arrays, LABELS, as_arrays(TEST)
    yield "sequence-templates", labeler(templates=TEMPLATES), {"columns": text}, LABELS, {"columns": test}
    yield "sequence-hashed", labeler(hash_bits=5, min_count=1), names, LABELS, as_names(TEST)
    yield "sequence-bio", labeler(constraints="bio"), names, LABELS, as_names(TEST)
    yield "sequence-weighted", labeler(class_weight={"O": 0.5, "B-NP": 2.0}), names, LABELS, as_names(TEST)
    yield "sequence-greedy", labeler(inference="greedy", order=2), names, LABELS, as_names(TEST)
    yield "sequence-greedy-bio", labeler(inference="greedy", constraints="bio"), dicts, LABELS, as_dicts(TEST)
    yield "sequence-perceptron", labeler(C=None, solver="perceptron"), names, LABELS, as_names(TEST)
    solver = LaRank(C=0.5, penalty="quadratic", max_iter=2, random_state=0)
    yield "sequence-solver", SequenceLabeler(solver=solver), names, LABELS, as_names(TEST)


def parsers():
    trees = [str(tree) for tree in TREES]
    tags = [[tag for _, tag in tree.tokens()] for tree in TREES[:6]]
    words = [[word for word, _ in tree.tokens()] for tree in TREES[:6]]
    yield "grammar", GrammarParser(C=0.3, max_iter=2, random_state=0), trees, None, tags
    yield "grammar-markov", GrammarParser(C=0.3, h=0, span_features=True, max_iter=2, random_state=0), trees, None, tags
    yield "grammar-words", GrammarParser(C=0.3, terminals="words", max_iter=2, random_state=0), trees, None, words
    yield "grammar-pcfg", GrammarParser(solver="pcfg", smoothing=0.1), trees, None, tags


def aligners():
    options = {"C": 0.5, "alphabet": "ACG", "max_iter": 3, "random_state": 0}
    yield "alignment", SequenceAligner(**options), PAIRS, ALIGNED, PAIRS
    yield "alignment-classes", SequenceAligner(classes=("HEC",), gaps="linear", **options), CLASSED, ALIGNED, CLASSED
    decoys = SequenceAligner(mode="local", letter_gaps=True, **options)
    yield "alignment-decoys", decoys, PAIRS, ALIGNED, PAIRS, {"decoys": DECOYS}


def classifiers():
    y = NAMES[KINDS].tolist()
    options = {"C": 1.0, "random_state": 0, "max_iter": 3}
    matrix = (1.0 + rng.integers(0, 3, (4, 4))) * (1.0 - np.eye(4))
    yield "taxonomy", TaxonomyClassifier(PATHS, **options), ROWS, y, TEST_ROWS
    yield "taxonomy-path", TaxonomyClassifier(PATHS, loss="path", leaf_only=False, **options), ROWS, y, TEST_ROWS
    yield "taxonomy-matrix", TaxonomyClassifier(PATHS, loss=matrix, **options), ROWS, y, TEST_ROWS
    yield "taxonomy-kernel", TaxonomyClassifier(PATHS, kernel="rbf", **options), ROWS, y, TEST_ROWS
    yield "taxonomy-flat", TaxonomyClassifier(max_weights=8, class_weight="balanced", **options), ROWS, y, TEST_ROWS
    text = TaxonomyClassifier(PATHS, vectorizer=TfidfVectorizer(sublinear_tf=True), **options)
    yield "taxonomy-text", text, TEXTS, y, TEXTS[:8]
    bags = [{name, NAMES[(k + 1) % 4].item()} if i % 2 else {name} for i, (name, k) in enumerate(zip(y, KINDS))]
    yield "ambiguous", AmbiguousClassifier(**options), ROWS, bags, TEST_ROWS
    yield "multiclass-larank", LaRankClassifier(gamma=0.2, **options), ROWS, y, TEST_ROWS
    yield "multiclass-larank-linear", LaRankClassifier(kernel="linear", **options), ROWS, KINDS, TEST_ROWS
    yield "multiclass-crammer-singer", CrammerSingerClassifier(gamma=0.2, tol=1e-2), ROWS, y, TEST_ROWS
    yield "multiclass-weston-watkins", WestonWatkinsClassifier(gamma=0.2, tol=1e-2), ROWS, y, TEST_ROWS
    yield "multiclass-perceptron", KernelPerceptronClassifier(gamma=0.2, random_state=0), ROWS, y, TEST_ROWS
    two = (KINDS > 1).astype(int)
    yield "binary-lasvm", LaSVMClassifier(gamma=0.2, random_state=0), ROWS, two, TEST_ROWS
    yield "binary-huller", HullerClassifier(gamma=0.2, random_state=0), ROWS, two, TEST_ROWS
    yield "binary-perceptron", KernelPerceptronClassifier(average=False, random_state=0), ROWS, two, TEST_ROWS
    yield "binary-sgdqn", SGDQNClassifier(alpha=1e-2, random_state=0), ROWS, two, TEST_ROWS
    yield "binary-tracking", TrackingClassifier(random_state=0), ROWS, two, TEST_ROWS


def others():
    sentences, bags = list(HOUSE.sentences), [list(bag) for bag in HOUSE.bags]
    yield "semantics", SemanticParser(random_state=0), sentences, bags, sentences[:5]
    arrays = as_arrays(SENTENCES)
    labels = [np.array([["B-NP", "I-NP", "O"].index(label) for label in y]) for y in LABELS]
    model = StructuredSVM(ViterbiOracle(**ORACLE), LaRank(C=0.5, max_iter=3, random_state=0))
    yield "structured", model, arrays, labels, as_arrays(TEST)


# These are saved after `partial_fit` too: their files hold no training state.
PARTIAL = ("sequence-attributes", "alignment", "taxonomy", "ambiguous", "structured")


def inputs(X):
    return read_columns(X["columns"].splitlines()) if isinstance(X, dict) else X


def opened(path):
    return structsvm.load(path, oracle=ViterbiOracle(**ORACLE) if "structured" in path.name else None)


def answers(model, test, name):
    """Predictions, and scores where there are some."""
    predictions = model.predict(inputs(test))
    if name.startswith("grammar"):
        predictions = [None if tree is None else str(tree) for tree in predictions]
    found = {"predictions": encoded(list(predictions) if isinstance(predictions, list) else predictions.tolist())}
    if name.startswith("alignment"):
        found["scores"] = rounded(model.decision_function([x for x, _ in test], [[z for _, z in test]] * len(test)))
    elif hasattr(model, "decision_function"):
        found["scores"] = rounded(model.decision_function(inputs(test)))
    return found


def continued(model, X, y, test, options, name):
    """Another pass from the file: what came out of it."""
    args = (inputs(X),) if y is None else (inputs(X), y)
    method = "partial_fit"
    if "warm_start" in model.get_params() and not name.endswith("-partial"):
        method = "fit"
        model.set_params(warm_start=True)
    elif not hasattr(model, "partial_fit"):
        return None
    try:
        getattr(model, method)(*args, **options)
    except ValueError as error:
        print(f"{name}: {error}")
        return None
    result = getattr(model, "result_", None)
    dual = None if result is None or np.isnan(result.dual) else float(result.dual)
    n_iter = None if result is None else int(result.n_iter)
    return {"method": method, "n_iter": n_iter, "dual": dual} | answers(model, test, name)


def write(folder, name, model, X, y, test, options):
    path = folder / f"{name}.model"
    model.save(path)
    record = {"X": place(X), "y": place(y), "test": place(test), "options": place(options)}
    record |= answers(opened(path), test, name)
    record["next"] = continued(opened(path), X, y, test, options, name)
    if name.startswith("structured"):
        record["oracle"] = ORACLE
    records[name] = record


def main(folder):
    warnings.simplefilter("ignore", structsvm.ConvergenceWarning)
    for maker in (sequences, parsers, aligners, classifiers, others):
        for name, model, X, y, test, *rest in maker():
            options = rest[0] if rest else {}
            args = (inputs(X),) if y is None else (inputs(X), y)
            write(folder, name, model.fit(*args, **options), X, y, test, options)
            if name in PARTIAL:
                model = type(model)(**model.get_params(deep=False)).partial_fit(*args, **options)
                write(folder, f"{name}-partial", model, X, y, test, options)
    write_checkpoint(folder)
    text = json.dumps({"data": data, "records": records}, separators=(",", ":"))
    (folder / "records.json").write_text(text + "\n")


def write_checkpoint(folder):
    """The checkpoint of a training run after two passes, and the model of the fourth."""
    X, path = as_names(SENTENCES), folder / "sequence.checkpoint"
    options = {"C": 0.5, "tol": None, "random_state": 0, "checkpoint": str(path)}
    SequenceLabeler(max_iter=3, **options).fit(X, LABELS)  # the file never holds the last pass
    state = path.read_bytes()
    model = SequenceLabeler(max_iter=4, **options).fit(X, LABELS)
    path.write_bytes(state)
    record = {"X": place(X), "y": place(LABELS), "test": place(as_names(TEST)), "n_iter": int(model.n_iter_)}
    record |= {"dual": model.result_.dual, "seconds": model.result_.history["seconds"][:2].tolist()}
    records[path.name] = record | answers(model, as_names(TEST), "sequence")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
