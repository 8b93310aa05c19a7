"""Tables 2 and 3 of Tsochantaridis and others (2004): named entities from 300 Spanish sentences, measured again.

The paper does not say which 300 sentences, nor what they were tested on, and its kernel is a polynomial of
second degree over features that it only names. Here the features of a token are strings of the words in a
window of three, and all pairs of them, which is what that kernel is about.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from sequence.attributes import attribute_lists
from sequence.data import FETCH, SEED, Task, train
from structsvm import CuttingPlane, Perceptron
from structsvm.features.columns import read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.metrics import token_accuracy
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor
from structsvm.tasks.sequence.labels import encode_labels
from svmstruct.hmm import HiddenMarkovModel

N_SENTENCES = 300
N_OTHERS = 1000  # sentences of the same file to test on
DRAWS = 5
QUICK = 60, 200  # sentences and others, of one draw
EPSILON = 0.01
FUNCTIONS = ("x", "shape", "prefix3", "suffix3")
ATOMS = [f"%{function}[{row},0]" for row, function in product((-1, 0, 1), FUNCTIONS)]
# Numbered: CRF++'s templates of equal text share their features, and here the position belongs to the feature.
PAIRS = [*([atom] for atom in ATOMS), *combinations(ATOMS, 2)]
TEMPLATES = "".join(f"U{k:02d}:{'/'.join(atoms)}\n" for k, atoms in enumerate(PAIRS)) + "B\n"

# Loss, rescaling; then training error, test error, constraints and their outputs' average loss in table 3.
FORMULATIONS = {
    "SVM2, zero-one loss": ("zero_one", "margin", ("0.2±0.1", "5.1±0.6", "2824±106", "1.02±0.01")),
    "SVM2, slack rescaled": ("hamming", "slack", ("0.4±0.4", "5.1±0.8", "2626±225", "1.10±0.08")),
    "SVM2, margin rescaled": ("hamming", "margin", ("0.3±0.2", "5.1±0.7", "2628±119", "1.17±0.12")),
}
TABLE_2 = {"HMM": 9.36, "CRF": 5.17, "averaged perceptron": 5.94, "SVM": 5.08}
# Readings of the paper's C = 1: its objective has C / n, so 1 / n is what it says.
READINGS = {"C = 1/n": 1.0 / N_SENTENCES, "C = 1": 1.0}

ERRORS = {
    "train": ("train err %", ".2f"),
    "others": ("test err %, same file", ".2f"),
    "test": ("test err %, testb", ".2f"),
}
TABLE_3_COLUMNS = {
    "method": ("method", ""),
    "C": ("our C", ""),
    "optimize": ("QP after each", ""),
    "train": ERRORS["train"],
    "paper_train": ("paper", ".2f"),
    "others": ERRORS["others"],
    "test": ERRORS["test"],
    "paper_test": ("paper", ".2f"),
    "constraints": ("constraints", ".0f"),
    "paper_constraints": ("paper", ".0f"),
    "kept": ("of them kept", ".0f"),
    "distance": ("avg loss", ".2f"),
    "paper_distance": ("paper", ".2f"),
    "rounds": ("rounds", ".0f"),
    "gap": ("relative gap", ".4f"),
    "wall": ("wall s", ".2f"),
    "cpu": ("CPU s", ".2f"),
}
TABLE_2_COLUMNS = {
    "method": ("method", ""),
    "others": ERRORS["others"],
    "test": ERRORS["test"],
    "paper": ("paper, test err %", ".2f"),
    "wall": ("training wall s", ".2f"),
    "cpu": ("training CPU s", ".2f"),
}
FEATURES = f"""
errors: tokens with a wrong label, mean ± standard deviation over random draws of {N_SENTENCES} sentences
from esp.train; tested on {N_OTHERS} other sentences of the same file and on all of esp.testb, which is from
other days; the paper states neither its 300 sentences nor its test data

features of a token: {", ".join(FUNCTIONS)} of the words at -1, 0 and 1 ({len(ATOMS)} strings), and all
{len(ATOMS) * (len(ATOMS) - 1) // 2} pairs of these in the place of the paper's polynomial kernel of second degree;
transitions; no part-of-speech tags
"""
TABLE_3_NOTES = f"""{FEATURES}
the paper minimises 1/2 |w|^2 + C / (2 n) sum xi^2 with C = 1, so our C = 1/n; C = 1 is what it would be
without the division

CuttingPlane(form="n_slack", epsilon={EPSILON}, tol=None): ends as the paper's algorithm 1 does, when no
constraint is violated by more; "constraint": the dual is optimised after each constraint, as the paper
writes it, "round": after each round

constraints: all that joined a working set; kept: those with alpha > 0 at the end; avg loss: wrong labels
of the kept constraints' outputs (Hamming distance, for the zero-one loss too)
"""
TABLE_2_NOTES = f"""{FEATURES}
HMM: counts of words and transitions plus one, all unknown words together one more

CRF: python-crfsuite, lbfgs, its defaults with feature.possible_transitions, on the same features

averaged perceptron: 10 passes; SVM: SVM2 with zero-one loss, of table 3
"""


def run(options):
    """Table 3, then table 2, on the same draws."""
    draws = [Draw.at(0, *QUICK)] if options.quick else [Draw.at(seed) for seed in range(DRAWS)]
    svm = {}
    for reading, C in READINGS.items():
        svm |= {(m, reading, "constraint"): [svm_row(d, m, C, "constraint") for d in draws] for m in FORMULATIONS}
    svm |= {(m, "C = 1", "round"): [svm_row(d, m, 1.0, "round") for d in draws] for m in FORMULATIONS}
    yield table_3(svm)
    yield table_2(draws, {reading: svm["SVM2, zero-one loss", reading, "constraint"] for reading in READINGS})


@dataclass(frozen=True)
class Draw:
    """Sentences drawn for training, encoded, and those for test.

    Attributes
    ----------
    tasks : dict of str to Task
        One for each key of `ERRORS`; they differ in what is tested.
    words : dict of str to list of lists of str
        The words of these sentences.
    gold : list of lists of str
        The labels to train on.
    """

    tasks: dict
    words: dict
    gold: list

    @classmethod
    def at(cls, seed, n=N_SENTENCES, n_others=N_OTHERS):
        data = FETCH["CoNLL-2002 es"]()
        whole, testb = (read_columns(path).select([0, -1]) for path in (data.train_path, data.test_path))
        order = np.random.default_rng(seed).permutation(len(whole))
        drawn, others = order[:n], order[n : n + n_others]
        columns = {"train": whole.take(drawn), "others": whole.take(others), "test": testb}
        encoder = FeatureEncoder(TEMPLATES)
        tokens = encoder.fit_transform(columns["train"].drop_last())
        labels, label_ids = encode_labels(columns["train"].select([-1]), tokens)
        gold = columns["train"].column(-1)
        task = Task("CoNLL-2002 es", encoder, labels, tokens, label_ids, tokens, gold, chunks=True)
        tasks = {
            name: replace(task, test=encoder.transform(part.drop_last()), gold=part.column(-1))
            for name, part in columns.items()
        }
        return cls(tasks, {name: part.column(0) for name, part in columns.items()}, gold)

    @property
    def task(self):
        return self.tasks["train"]

    def linear_errors(self, oracle, weights):
        """Errors in percent, as `ERRORS` names them, of trained weights."""
        return {k: 100.0 * (1.0 - task.score(oracle, weights)["accuracy"]) for k, task in self.tasks.items()}

    def errors(self, predict):
        """The same of what ``predict(name)`` returns: label lists of a part."""
        return {k: 100.0 * (1.0 - token_accuracy(task.gold, predict(k))) for k, task in self.tasks.items()}


# ---- table 3 -------------------------------------------------------------------------------------


class Joined(Monitor):
    """Counts the constraints that joined."""

    total = 0

    def end_pass(self, run):
        self.total += run.schedule.joined


def svm_row(draw, method, C, optimize):
    """Train on one draw, and score."""
    loss, rescaling, _ = FORMULATIONS[method]
    oracle = ViterbiOracle(len(draw.task.labels), draw.task.encoder.n_features, loss=loss)
    solver = CuttingPlane(
        C, rescaling=rescaling, penalty="quadratic", epsilon=EPSILON, optimize=optimize, tol=None, random_state=SEED
    )
    joined = Joined()
    done = train(oracle, draw.task.train, draw.task.label_ids, solver, joined)
    result = done.run.result()
    return draw.linear_errors(oracle, done.run.weights) | {
        "constraints": joined.total,
        "kept": done.run.state.n_cuts,
        "distance": np.diff(done.run.get_state()["cut_bounds"]).mean() / 2.0,  # words (position, label) of a cut
        "rounds": result.n_iter,
        "gap": result.relative_gap,
        "wall": done.wall,
        "cpu": done.cpu,
    }


def spread(rows, columns):
    """Mean and standard deviation over draws as text, and the values."""
    row = {}
    for key in rows[0]:
        values = [float(r[key]) for r in rows]
        row[f"{key}_draws"] = values
        row[key] = float(np.mean(values))
        if len(values) > 1 and key not in ("wall", "cpu"):
            spec = columns[key][1] if key in columns else ".2f"
            row[key] = f"{np.mean(values):{spec}}±{np.std(values, ddof=1):{spec}}"
    return row


def table_3(svm):
    rows = []
    for (method, reading, optimize), draws in svm.items():
        paper = dict(zip(("train", "test", "constraints", "distance"), FORMULATIONS[method][2], strict=True))
        row = {"method": method, "C": reading, "optimize": optimize} | spread(draws, TABLE_3_COLUMNS)
        rows.append(row | {f"paper_{key}": value for key, value in paper.items()})
    n_draws = len(rows[0]["train_draws"])
    title = f"Table 3: named entities, {N_SENTENCES} sentences, {n_draws} draws"
    return Table(title, TABLE_3_COLUMNS, rows, notes(TABLE_3_NOTES))


# ---- table 2 -------------------------------------------------------------------------------------


def table_2(draws, svm):
    methods = {
        "HMM": [hmm_row(draw) for draw in draws],
        "CRF": [crf_row(draw) for draw in draws],
        "averaged perceptron": [perceptron_row(draw) for draw in draws],
    }
    for reading, rows in svm.items():
        methods[f"SVM, {reading}"] = [{key: row[key] for key in (*ERRORS, "wall", "cpu")} for row in rows]
    rows = [
        {"method": method, "paper": TABLE_2[method.split(",")[0]]} | spread(rows, TABLE_2_COLUMNS)
        for method, rows in methods.items()
    ]
    title = f"Table 2: named entities, {N_SENTENCES} sentences, {len(draws)} draws"
    return Table(title, TABLE_2_COLUMNS, rows, notes(TABLE_2_NOTES))


def hmm_row(draw):
    with Clock() as clock:
        model = HiddenMarkovModel().fit(draw.words["train"], draw.gold)
    return draw.errors(lambda part: model.predict(draw.words[part])) | {"wall": clock.wall, "cpu": clock.cpu}


def crf_row(draw):
    import pycrfsuite

    encoder = draw.task.encoder
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"feature.possible_transitions": True}, verbose=False)
    for sentence, labels in zip(attribute_lists(encoder, draw.task.train), draw.gold, strict=True):
        trainer.append(sentence, labels)
    tagger = pycrfsuite.Tagger()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "crf.model")
        with Clock() as clock:
            trainer.train(path)
        tagger.open(path)

        def predict(part):
            return [tagger.tag(sentence) for sentence in attribute_lists(encoder, draw.tasks[part].test)]

        return draw.errors(predict) | {"wall": clock.wall, "cpu": clock.cpu}


def perceptron_row(draw):
    oracle = draw.task.oracle("exact")
    done = train(oracle, draw.task.train, draw.task.label_ids, Perceptron(max_iter=10, random_state=SEED))
    return draw.linear_errors(oracle, done.run.weights) | {"wall": done.wall, "cpu": done.cpu}
