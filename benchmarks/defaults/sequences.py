"""Label sequences: SequenceLabeler() beside the CRFs, on the same attributes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from common.measure import package_version, run_command
from defaults.data import tutorial
from defaults.methods import Method, Score, Trained, compared
from sequence import commands
from sequence.attributes import attribute_lists, write_attributes
from sequence.data import FETCH
from structsvm.datasets import fetch_ocr_letters
from structsvm.features.columns import read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.metrics import chunk_scores
from structsvm.tasks import SequenceLabeler

GRIDS = {
    "lbfgs": [{"c1": a, "c2": b, "max_iterations": 200} for a, b in ((0.0, 1.0), (0.0, 0.1), (0.1, 0.1), (0.1, 0.01))],
    "l2sgd": [{"c2": c2, "max_iterations": 50} for c2 in (1.0, 0.1, 0.01)],
    "pa": [{"c": c, "max_iterations": 100} for c in (1.0, 0.1)],
}
WAPITI = [{"rho1": rho1} for rho1 in (0.1, 0.5, 1.0)]
CRFPP = [{"c": c} for c in (1.0, 4.0, 16.0)]
FEW = 1000  # sequences, at most, for CRF++
WRAPPER = "sklearn-crfsuite"
TUTORIAL = {"algorithm": "lbfgs", "c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}
LIMIT = 1200  # seconds for a training of Wapiti or CRF++
SETS = {
    "Spanish entities, dicts, 300 sentences": lambda: dicts(300),
    "Spanish entities, dicts, 1000 sentences": lambda: dicts(1000),
    "OCR, one fold": lambda: letters(np.equal),
    "Spanish entities, CRF++'s template": lambda: columns("CoNLL-2002 es", "crf++", 3),
    "CoNLL-2000, CRF++'s template": lambda: columns("CoNLL-2000", "crf++", 3),
    "treebank tags, rich template": lambda: columns("Treebank tags", "rich", 1),
    "OCR, nine folds": lambda: letters(np.not_equal),
    "Spanish entities, dicts, all sentences": lambda: dicts(None),
    "Spanish entities, every feature of CRF++'s template": lambda: columns("CoNLL-2002 es", "crf++", 1),
    "Spanish entities, rich template": lambda: columns("CoNLL-2002 es", "rich", 1),
}
ABOUT = f"""
dicts: those of sklearn-crfsuite's tutorial; CRF++'s template: of its own example, features seen three times or more
(every feature: once or more, which is 380,000 in the place of 92,000);
rich: structsvm's default; OCR: numbers for structsvm, the names of the black pixels for the others; trained on fold 0,
tested on the others, or the other way round

structsvm adds two trainings, of the log loss and of a margin, each with its own C; its CPU seconds are those of both

CRFsuite (by python-crfsuite): with feature.possible_transitions; lbfgs: c1 and c2 0, 1; 0, 0.1; 0.1, 0.1; 0.1, 0.01,
at most 200 iterations; l2sgd: c2 1, 0.1, 0.01, 50 passes; pa: c 1, 0.1, 100 passes. sklearn-crfsuite: the same program,
once, with its tutorial's setting: lbfgs, c1 and c2 0.1, 100 iterations. Wapiti: rprop, rho1 0.1, 0.5, 1, its own stop.
CRF++: c 1, 4, 16, for {FEW} sentences of entities at most (all of them take it 8 to 15 minutes: sequence.md). Wapiti
and CRF++: CPU seconds of the command that trains
"""


def run(options):
    for name, make in list(SETS.items())[: 3 if options.quick else None]:
        if options.only not in name:
            continue
        train, test = make()
        if options.quick:
            train, test = (tuple(items[:100] for items in part) for part in (train, test))
        is_chunks = any(label.startswith("B-") for labels in train[1] for label in labels)
        score, how = (F1, "chunk F1") if is_chunks else (TOKENS, "token accuracy")
        made = methods(has_crfpp=is_chunks and len(train[1]) <= FEW)
        yield from compared(f"{name}: {how}", made, train, test, score, ABOUT + absent(), options)


def methods(*, has_crfpp):
    wapiti_found, crfpp_found = commands.wapiti(), commands.crfpp()
    return [
        Method("structsvm", ours, takes_jobs=True),
        Method('structsvm, loss="hamming"', lambda X, y, setting: ours(X, y, {"loss": "hamming"} | setting)),
        Method('structsvm, loss="log"', lambda X, y, setting: ours(X, y, {"loss": "log"} | setting)),
        *(
            Method(f"CRFsuite, {algorithm}", lambda X, y, s, a=algorithm: crfsuite(X, y, a, s), grid, "python-crfsuite")
            for algorithm, grid in GRIDS.items()
        ),
        *([Method(WRAPPER, tutorials_crf, package=WRAPPER)] if package_version(WRAPPER) else []),
        *([Method("Wapiti, rprop", wapiti, WAPITI, f"Wapiti {wapiti_found[-1]}")] if wapiti_found else []),
        *([Method("CRF++", crfpp, CRFPP, f"CRF++ {crfpp_found[-1]}")] if crfpp_found and has_crfpp else []),
    ]


def absent():
    """A note on programs that are not here."""
    programs = {"Wapiti": commands.wapiti(), "CRF++": commands.crfpp(), WRAPPER: package_version(WRAPPER)}
    missing = [name for name, found in programs.items() if not found]
    if missing:
        print(f"{' and '.join(missing)}: not found (WAPITI, CRF_LEARN), left out", file=sys.stderr)
    return "".join(f"\n{name} was not installed\n" for name in missing)


# ---- data: (X, y) of the training and the test part --------------------------------------------


def dicts(n):
    data = FETCH["CoNLL-2002 es"]()
    return [(list(map(tutorial, data.X_train[:n])), data.y_train[:n]), (list(map(tutorial, data.X_test)), data.y_test)]


def columns(name, templates, min_count):
    data = FETCH[name]()
    train, test = read_columns(data.train_path), read_columns(data.test_path)
    encoder = FeatureEncoder(templates, min_count)
    tokens = encoder.fit_transform(train.drop_last()), encoder.transform(test.drop_last())
    return [(attribute_lists(encoder, t), part.column(-1)) for t, part in zip(tokens, (train, test), strict=True)]


def letters(compare):
    data = fetch_ocr_letters()
    chosen = compare(data.folds, 0)
    return [
        ([data.X[i] for i in np.flatnonzero(part)], [list(map(str, data.y[i])) for i in np.flatnonzero(part)])
        for part in (chosen, ~chosen)
    ]


def named(sentence):
    """The attributes of each token, as other programs read them."""
    return [
        [f"p{k}" for k in np.flatnonzero(token)] if isinstance(token, np.ndarray)
        else [f"{k}={v}" if isinstance(v, str) else k for k, v in token.items() if v] if isinstance(token, dict)
        else token
        for token in sentence
    ]  # fmt: skip


# ---- scores ------------------------------------------------------------------------------------


def chunks(y, predicted):
    found = [chunk_scores([a], [b]) for a, b in zip(y, predicted, strict=True)]
    return [[s.n_correct, s.n_predicted, s.n_true] for s in found]


def right(y, predicted):
    return [[sum(a == b for a, b in zip(s, t, strict=True)), len(s)] for s, t in zip(y, predicted, strict=True)]


F1 = Score(lambda y, p: np.array(chunks(y, p)), lambda n: 200.0 * n[0] / max(n[1] + n[2], 1.0))
TOKENS = Score(lambda y, p: np.array(right(y, p)), lambda n: 100.0 * n[0] / n[1])


# ---- programs ----------------------------------------------------------------------------------


def ours(X, y, setting):
    """Chosen, and once more without the choice: a training per loss."""
    if "again" in setting:
        labelers = [SequenceLabeler(random_state=0, **one).fit(X, y) for one in setting["again"]]
        return Trained(labelers[0].predict)
    labeler = SequenceLabeler(random_state=0, **setting).fit(X, y)
    losses = {loss: row[0] for loss, row in labeler.validation_.get("losses", {labeler.loss_: [labeler.C_]}).items()}
    passes = {loss: result.n_iter for loss, result in labeler.results_.items()}
    chosen = {loss: f"C {C:g} passes {passes[loss]}" for loss, C in losses.items()}
    again = [{"loss": loss, "C": C, "probability": len(losses) < 2} for loss, C in losses.items()]
    if "loss" in setting:
        chosen = {"C": float(labeler.C_), "passes": labeler.n_iter_}
    return Trained(labeler.predict, chosen, {"again": again})


def crfsuite(X, y, algorithm, setting):
    tagger = tagger_of(X, y, algorithm, setting)
    return Trained(lambda X: [tagger.tag(named(sentence)) for sentence in X])


def tagger_of(X, y, algorithm, setting):
    """CRFsuite's tagger, trained."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params(setting | {"feature.possible_transitions": True})
    for sentence, labels in zip(X, y, strict=True):
        trainer.append(named(sentence), labels)
    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        tagger.open(path)  # the model stays when the file goes
    return tagger


def tutorials_crf(X, y, setting):
    from sklearn_crfsuite import CRF

    crf = CRF(**TUTORIAL).fit(list(map(named, X)), y)
    return Trained(lambda X: crf.predict(list(map(named, X))))


def wapiti(X, y, setting):
    """Its raw format, attributes of single labels and one of label pairs."""
    path, _ = commands.wapiti()
    folder = tempfile.TemporaryDirectory()
    model = Path(folder.name) / "model"

    def write(X, y, *, labelled):
        attributes = Path(folder.name) / "attributes"
        write_attributes(attributes, map(named, X), y)
        return commands.write_raw(attributes.with_suffix(".raw"), attributes, 1, labelled=labelled)

    settings = [word for name, value in setting.items() for word in (f"--{name}", value)]
    data = write(X, y, labelled=True)
    done = run_command([path, "train", "-t", "1", "-a", "rprop", *settings, data, model], limit=LIMIT)

    def predict(X):
        data = write(X, [["?"] * len(sentence) for sentence in X], labelled=False)
        run_command([path, "label", "-l", "-m", model, data, data.with_suffix(".out")])
        return commands.label_blocks(data.with_suffix(".out"), -1)

    return Trained(predict, cpu=done.cpu)


def crfpp(X, y, setting):
    """A column per attribute, "-" where a token has fewer; one namespace for all."""
    learn, test, _ = commands.crfpp()
    folder = tempfile.TemporaryDirectory()
    templates, data, out, model = (Path(folder.name) / name for name in ("templates", "data", "out", "model"))
    width = max(len(token) for sentence in X for token in named(sentence))
    templates.write_text("".join(f"U:%x[0,{k}]\n" for k in range(width)) + "B\n", encoding="utf-8")

    def write(X, y):
        padded = [[(token + ["-"] * width)[:width] for token in named(sentence)] for sentence in X]
        lines = [
            "".join(" ".join([*token, label]) + "\n" for token, label in zip(sentence, labels, strict=True))
            for sentence, labels in zip(padded, y, strict=True)
        ]
        data.write_text("\n".join(lines) + "\n", encoding="utf-8")

    write(X, y)
    done = run_command([learn, "-p", "1", "-c", setting["c"], templates, data, model], limit=LIMIT)

    def predict(X, folder=folder):
        write(X, [["?"] * len(sentence) for sentence in X])
        run_command([test, "-m", model, "-o", out, data])
        return commands.label_blocks(out, -1)

    return Trained(predict, cpu=done.cpu)
