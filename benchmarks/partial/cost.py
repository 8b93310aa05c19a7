"""Time of learning from what is known in part, in units of ordinary trainings on the same examples."""

from __future__ import annotations

import warnings

import numpy as np

from common.measure import Clock
from common.report import Table, notes
from dependency.data import some
from partial.sequences import hidden
from partial.trees import half
from structsvm import LaRank, LatentSVM, PassiveAggressive
from structsvm.datasets import (
    fetch_conll2000,
    fetch_geoquery,
    fetch_lost,
    fetch_oxbench,
    fetch_treebank_sample,
    fetch_ud_english_ewt,
)
from structsvm.features.columns import Columns
from structsvm.metrics import chunk_f1
from structsvm.tasks import (
    AmbiguousClassifier,
    DependencyParser,
    GrammarParser,
    SemanticParser,
    SequenceAligner,
    SequenceLabeler,
    TaxonomyClassifier,
    TreebankGrammar,
)
from structsvm.tasks.grammar.trees import as_trees
from taxonomy.data import splits

SEED = 0
COLUMNS = {
    "structure": ("structure", ""),
    "known": ("known", ""),
    "loss": ("loss", ""),
    "ordinary": ("all known: CPU s", ".2f"),
    "ordinary_passes": ("passes", "d"),
    "cpu": ("known in part: CPU s", ".2f"),
    "passes": ("passes in all", "d"),
    "times": ("trainings", ".2f"),
}
ABOUT = """
all known and known in part: the same examples, C fixed, no probabilities fitted, the solvers' own numbers of passes. Of
a margin known in part: all rounds of completion; of the log loss: the likelihood of what is known
"""


def run(options):
    made = Table("What a latent training takes in units of an ordinary one", COLUMNS, notes=notes(ABOUT))
    for structure, known, loss, trainings in cases(60 if options.quick else 500):
        row = {"structure": structure, "known": known, "loss": loss}
        for name, train in zip(("ordinary", "cpu"), trainings, strict=True):
            with warnings.catch_warnings(), Clock() as clock:
                warnings.simplefilter("ignore")
                model = train()
            row |= {name: clock.cpu, "passes" if name == "cpu" else "ordinary_passes": model.n_iter_}
        made.rows.append(row | {"times": row["cpu"] / row["ordinary"]})
        yield made
    yield from when(60 if options.quick else 500)


WHEN = {
    "data": ("data", ""),
    "way": ("completed", ""),
    "objective": ("objective", ".2f"),
    "score": ("test accuracy or F1 %", ".2f"),
    "passes": ("passes", ".1f"),
    "cpu": ("CPU s", ".2f"),
}
SEEDS = 3
ABOUT_WHEN = f"""
a margin with C fixed, LaRank; means of {SEEDS} seeds. Lost: "max" of 2.2 candidates a row, each seed another fold;
CLINC150: half of the documents at leaves; CoNLL-2000: half of the labels, F1 of chunks, each seed other labels

once a pass: `LatentSVM` around a solver with max_iter=1. In the steps: `online=True`, then rounds, of one pass with
max_iter=1. In a stream: batches of one example (`partial_fit`), each completed under the weights so far, as OSPAS does;
its objective is not known. The log loss completes in each step as it is
"""


def when(n):
    """How often completions are found: when a round is solved, after each pass, in each step."""
    made = Table("When completions are found", WHEN, notes=notes(ABOUT_WHEN))
    for name, C, problem in (
        ("Lost, 897 rows", 0.1, faces),
        (f"CLINC150, {2 * n} documents", 1.0, leaves),
        (f"CoNLL-2000, {n} sentences", 0.1, chunks),
    ):
        for way, params in {
            "when a round is solved": {},
            "once a pass": {"max_iter": 1},
            "in the steps, then rounds": {"online": True},
            "in the steps, then once a pass": {"online": True, "max_iter": 1},
            "in a stream": None,
        }.items():
            if params is None and problem is chunks:
                continue
            rows = [measured(*problem(n, seed), C, seed, params) for seed in range(SEEDS)]
            made.rows.append({"data": name, "way": way} | {k: np.mean([row[k] for row in rows]) for k in rows[0]})
            yield made


def measured(fit, score, C, seed, params):
    """A row: `params` are those of LatentSVM and of the solver in it; None: a stream."""
    with warnings.catch_warnings(), Clock() as clock:
        warnings.simplefilter("ignore")
        if params is None:
            model = fit(PassiveAggressive(C=C, random_state=seed), stream=True)
        else:
            steps = LatentSVM(LaRank(C=C, random_state=seed)).set_params(**params)
            model = fit(steps, stream=False)
    row = {"score": 100.0 * score(model), "cpu": clock.cpu}
    if params is None:
        return row | {"passes": 1.0, "objective": np.nan}
    return row | {"passes": model.n_iter_, "objective": model.result_.primal}


def faces(n, seed):
    data = fetch_lost()
    test = data.folds == seed
    X = data.X - data.X[~test].mean(axis=0)
    X /= np.maximum(X[~test].std(axis=0), 1e-12)
    sets = [set(bag) for bag, is_test in zip(data.candidates, test, strict=True) if not is_test]

    def fit(solver, stream):
        model = AmbiguousClassifier(None, loss="max", solver=solver)
        if not stream:
            return model.fit(X[~test], sets)
        return one_by_one(model, X[~test], sets, classes=list(range(data.n_labels)))

    return fit, lambda model: np.mean(model.predict(X[test]) == data.y[test])


def leaves(n, seed):
    train, other = splits("CLINC150")
    rng = np.random.default_rng(seed)
    train = train.take(rng.permutation(len(train.y))[: 2 * n])
    known = above(train, rng)
    rows, rows_of_test = train.features(other)

    def fit(solver, stream):
        model = TaxonomyClassifier(train.taxonomy, leaf_only=True, C=None, solver=solver)
        if not stream:
            return model.fit(rows, known)
        return one_by_one(model, rows, known, classes=sorted(set(train.y)))

    return fit, lambda model: np.mean(model.predict(rows_of_test) == other.y)


def chunks(n, seed):
    data = fetch_conll2000()
    X, y = Columns.from_sequences(data.X_train[:n]), data.y_train[:n]
    X_test, y_test = Columns.from_sequences(data.X_test[: 2 * n]), data.y_test[: 2 * n]
    known = hidden(y, 0.5, seed)

    def fit(solver, stream):
        return SequenceLabeler(None, loss="hamming", probability=False, solver=solver).fit(X, known)

    return fit, lambda model: chunk_f1(y_test, model.predict(X_test))


def one_by_one(model, X, y, **first):
    """A stream of batches of one example."""
    for k in np.random.default_rng(SEED).permutation(len(y)).tolist():
        model.partial_fit(X[k : k + 1], y[k : k + 1], **first)
    return model


def above(train, rng):
    """Leaves, half of them hidden below their parents, but for one of each."""
    hide, taxonomy = rng.random(len(train.y)) < 0.5, train.taxonomy
    hide[np.unique(train.y, return_index=True)[1]] = False
    known = [(taxonomy.path(leaf)[:-1] or [taxonomy.root])[-1] if h else leaf for leaf, h in zip(train.y, hide)]
    return np.array(known, dtype=object)


def cases(n):
    """Yield ``(structure, what is known, loss, trainings)``, the ordinary one first."""
    yield from chains(n)
    yield from trees(n // 3)
    yield from heads(n // 2)
    yield from documents(2 * n)
    yield from bags(n)
    yield from alignments(n // 4)
    yield from questions(n // 4)


def both(fit, *data):
    return [lambda y=y: fit(y) for y in data]


def chains(n):
    data = fetch_conll2000()
    X, y = Columns.from_sequences(data.X_train[:n]), data.y_train[:n]
    known = hidden(y, 0.5)
    for structure, loss, C, inference in (
        ("label chains", "hamming", 0.1, "exact"),
        ("label chains", "log", 1.0, "exact"),
        ("chains, greedy", "hamming", 0.1, "greedy"),
    ):
        settings = {"loss": loss, "inference": inference, "probability": False, "random_state": SEED}
        fit = lambda y, C=C, settings=settings: SequenceLabeler(C, **settings).fit(X, y)  # noqa: E731
        yield f"{structure}: {n} sentences", "half of the labels", loss, both(fit, y, known)


def trees(n):
    rng = np.random.default_rng(SEED)
    whole = [t for t in as_trees(fetch_treebank_sample().train, True) if 1 < len(t.leaves()) <= 15][:n]
    known = [tree if rng.random() < 0.5 else half(tree, rng) for tree in whole]
    for loss, C in (("hamming", 0.1), ("log", 1.0)):
        about = {"loss": loss, "grammar": TreebankGrammar(h=0), "prior": None, "random_state": SEED}
        fit = lambda y, C=C, about=about: GrammarParser(C, **about).fit(y)  # noqa: E731
        yield f"trees: {len(whole)}", "half of them, and half of the others' brackets", loss, both(fit, whole, known)


def heads(n):
    rng, sentences = np.random.default_rng(SEED), some(fetch_ud_english_ewt().train, n)
    y = [tree.arcs for tree in sentences]
    known = [[(None if rng.random() < 0.5 else head, label) for head, label in arcs] for arcs in y]
    fit = lambda y: DependencyParser(0.1, random_state=SEED).fit(sentences, y)  # noqa: E731
    yield f"dependency trees: {len(sentences)}", "half of the heads", "hamming", both(fit, y, known)


def documents(n):
    train, test = splits("CLINC150")
    rng = np.random.default_rng(SEED)
    train = train.take(rng.permutation(len(train.y))[:n])
    X, taxonomy, known = train.features(test)[0], train.taxonomy, above(train, rng)
    for loss in ("tree", "log"):
        fit = lambda y, loss=loss: TaxonomyClassifier(  # noqa: E731
            taxonomy, leaf_only=True, C=1.0, loss=loss, random_state=SEED
        ).fit(X, y)
        yield f"taxonomy: {n} documents", "half at leaves", loss, both(fit, train.y, known)


def bags(n):
    data = fetch_lost()
    X = (data.X - data.X.mean(axis=0)) / np.maximum(data.X.std(axis=0), 1e-12)
    X, sets, y = X[:n], [set(bag) for bag in data.candidates[:n]], [{int(label)} for label in data.y[:n]]
    for loss, C in (("max", 0.003), ("log", 0.03)):
        fit = lambda y, C=C, loss=loss: AmbiguousClassifier(C, loss=loss, random_state=SEED).fit(X, y)  # noqa: E731
        yield f"bags of labels: {len(X)} rows", "2.2 candidates a row", loss, both(fit, y, sets)


def alignments(n):
    data = fetch_oxbench()
    X, known = data.X_train[:n], data.y_train[:n]
    whole = [tuple(row.upper() for row in rows) for rows in known]
    settings = {"mode": "semi_global", "prior": ("BLOSUM62", -11.0, -1.0)}
    fit = lambda y: SequenceAligner(  # noqa: E731
        None, solver=LatentSVM(LaRank(C=0.03, max_iter=6, random_state=SEED)), **settings
    ).fit(X, y)
    yield f"alignments: {n} pairs", "core columns", "q", both(fit, whole, known)


def questions(n):
    data = fetch_geoquery()
    X, y = data.X_train[:n], data.y_train[:n]
    rng = np.random.default_rng(SEED)
    sets = [[*bag, *y[k]] for bag, k in zip(y, rng.integers(len(y), size=len(y)), strict=True)]
    fit = lambda y: SemanticParser(1.0, random_state=SEED).fit(X, y)  # noqa: E731
    yield f"hybrid trees: {n} questions", "two meanings, one of which is right", "log", both(fit, y, sets)
