"""Hybrid trees: Jobs and ATIS from bags, bags without the right meaning, learning curves, solvers and features, growth
with units and words, what text costs beside the charts."""

from __future__ import annotations

import re
from hashlib import sha256

import numpy as np

from common.measure import Clock, peak
from common.report import Table, notes
from semantics.hybrid import funql, measured
from structsvm.datasets import fetch_geoquery
from structsvm.metrics import meaning_scores
from structsvm.oracles._hybrid import Learner
from structsvm.structures.meanings import format_meaning, parse_meaning
from structsvm.tasks import Hybrid, SemanticParser
from structsvm.tasks.semantics.hybrid import CONSIDERED
from structsvm.tasks.semantics.likelihood import PENALTY, USUAL, BagLikelihood, HybridProblem, first_weights, paces

N_TEXT = 600
FOLDS = 3
SHARES = (0.1, 0.3, 0.5)
SIZES = (75, 150, 300)
GROWTH = (125, 250, 500)
PASSES = 4
LENGTHS = (10, 20, 40, 80, 160)
SCORES = {
    "precision": ("precision", ".3f"),
    "recall": ("recall", ".3f"),
    "f1": ("F1", ".3f"),
    "train": ("train, CPU s", ".1f"),
    "predict": ("ms a sentence", ".1f"),
}


def run(options):
    made = {
        "Jobs from bags": from_bags,
        "ATIS from bags": from_bags,
        "solvers and features": choices,
        "noise": noise,
        "learning curves": curves,
        "growth with units": units,
        "growth with words": words,
        "text beside charts": text,
    }
    for name, table in made.items():
        if options.only in name:
            yield from table(f"Hybrid trees: {name}", options.quick)


def permuted(ids, data):
    """The order of examples that GeoQuery's bags are made in."""
    return sorted(ids, key=lambda i: sha256(f"{data}|perm|{i}".encode()).hexdigest())


def made_ambiguous(y, level, data):
    """Bags as those of GeoQuery's README: of example p those of p - a to p + b of an order by chance, a and b to level.

    `y` are bags of one meaning.
    """
    order, bags = permuted(range(len(y)), data), [[]] * len(y)
    for p, i in enumerate(order):
        a, b = (int(sha256(f"{data}|{level}|{s}|{i}".encode()).hexdigest(), 16) % (level + 1) for s in "ab")
        bags[i] = sorted({y[k][0] for k in order[max(p - a, 0) : p + b + 1]})
    return bags


def from_bags(title, quick):
    name = title.split()[2]
    made = Table(title, {"level": ("level", "d"), "size": ("meanings a bag", ".2f"), "way": ("way", "")} | SCORES)
    X, y = funql(name.lower(), "train", slice(40 if quick else None))
    test = funql(name.lower(), "test", slice(40 if quick else None))
    made.notes = notes(
        f"""
        exact match; {len(X)} questions of {name}'s training part, all of its test part; bags made as GeoQuery's are; no
        grammar, one seed, the defaults; template: as in the tables beside this one
        """
    )
    for level in (0, 1, 2, 3):
        bags = made_ambiguous(y, level, name.lower())
        for way in ("template", "hybrid"):
            values = dict(zip(SCORES, measured(way, X, bags, *test, None, 0), strict=True))
            made.rows.append({"level": level, "size": np.mean([*map(len, bags)]), "way": way} | values)
            yield made


def choices(title, quick):
    """Other solvers and features on parts of GeoQuery's training questions; units that are named with their parents."""
    geo = fetch_geoquery()
    columns = {"way": ("way", ""), "grammar": ("grammar", "")} | {k: SCORES[k] for k in ("f1", "train", "predict")}
    made = Table(title, columns)
    made.notes = notes(
        f"""
        GeoQuery, pairs; each third of the 600 training questions is predicted from the others; exact match, the mean of
        {FOLDS} parts, one seed; the test questions are not looked at

        with its parent's name: each relation is a unit of its own below each relation that it was seen below
        (capital~answer), so that all its features, those of what fills its slots among them, see two units more; the
        parents are taken out of what is predicted. The grammar does not know such names

        inside: words of the whole span of a unit, its arguments' too, which so overlap with theirs; and its length
        """
    )
    ways = [
        ("the defaults", {}, "given"),
        ("features: shape too", {"features": [*USUAL, "shape"]}, "given"),
        ("features: inside too", {"features": [*USUAL, "inside"]}, "given"),
        ("features: none of those that may be chosen", {"features": []}, "given"),
        ("averaged perceptron", {"solver": "perceptron"}, "given"),
        ("LaRank in LatentSVM", {"solver": "larank"}, "given"),
        ("the defaults", {}, "none"),
        ("each relation with its parent's name", {}, "none"),
    ]
    order = np.random.default_rng(7).permutation(len(geo.X_train))[: 90 if quick else None]
    for way, params, grammar in ways:
        values = []
        for fold in range(1 if quick else FOLDS):
            held_out = np.sort(order[fold::3])
            rest = np.setdiff1d(order, held_out)
            (X, y), test = [
                ([geo.X_train[i] for i in rows], [geo.y_train[i] for i in rows]) for rows in (rest, held_out)
            ]
            if "parent" in way:
                y = [[format_meaning(with_parents(parse_meaning(meaning))) for meaning in bag] for bag in y]
            with Clock() as training:
                given = {"grammar": geo.grammar if grammar == "given" else None, "random_state": 0}
                parser = SemanticParser(method=Hybrid(**params), **given).fit(X, y)
            with Clock() as predicting:
                found = parser.predict(test[0])
            found = [[re.sub(r"~\w+", "", meaning) for meaning in meanings] for meanings in found]
            f1 = meaning_scores(test[1], found).f1
            values.append((f1, training.cpu, 1e3 * predicting.cpu / len(found)))
        mean = dict(zip(("f1", "train", "predict"), np.mean(values, axis=0), strict=True))
        made.rows.append({"way": way, "grammar": grammar} | mean)
        yield made


def with_parents(tree, parent=None):
    """A meaning whose relations are named with those that they are arguments of; names of things are left."""
    if isinstance(tree, str) or (len(tree) == 2 and isinstance(tree[1], str)):
        return tree
    name = tree[0] if parent is None else f"{tree[0]}~{parent}"
    return name, *[with_parents(part, tree[0]) for part in tree[1:]]


def noise(title, quick):
    """The right meaning is taken out of some bags; one of another question's stands in those that had no other."""
    geo = fetch_geoquery()
    columns = {"share": ("right meaning missing in", ".0%")} | {f"level {k}": (f"F1, level {k}", ".3f") for k in (1, 3)}
    made = Table(title, columns)
    made.notes = notes("GeoQuery, 600 questions to train on, 280 to test on; exact match, one seed, the defaults")
    for share in SHARES[:2] if quick else SHARES:
        row = {"share": share}
        for level in (1, 3):
            draw = np.random.default_rng(0)
            bags = [[*bag] for bag in geo.bags[level]]
            wrong = draw.permutation(len(bags))[: round(share * len(bags))]
            for i in wrong:
                (right,) = geo.y_train[i]
                others = [m for (m,) in geo.y_train if m != right]
                bags[i] = [m for m in bags[i] if m != right] or [others[draw.integers(len(others))]]
            parts = (part[: 60 if quick else None] for part in (geo.X_train, bags, geo.X_test, geo.y_test))
            row[f"level {level}"] = measured("hybrid", *parts, geo.grammar, 0)[2]
        made.rows.append(row)
        yield made


def curves(title, quick):
    geo = fetch_geoquery()
    levels = (0, 3)
    columns = {"n": ("training questions", "d")} | {f"level {k}": (f"F1, level {k}", ".3f") for k in levels}
    made = Table(title, columns, notes=notes("GeoQuery, 280 to test on; exact match, one seed, the defaults"))
    for n in SIZES[:1] if quick else SIZES:
        row = {"n": n}
        for level in levels:
            y = (geo.bags[level] if level else geo.y_train)[:n]
            row[f"level {level}"] = measured("hybrid", geo.X_train[:n], y, geo.X_test, geo.y_test, geo.grammar, 0)[2]
        made.rows.append(row)
        yield made


def units(title, quick):
    columns = {
        "n": ("training pairs", "d"),
        "units": ("units", "d"),
        "features": ("features, million", ".2f"),
        "train": ("train, ms a pair and pass", ".2f"),
        "predict": ("ms a question", ".1f"),
        "memory": ("peak memory, MB", ".0f"),
    }
    made = Table(title, columns)
    made.notes = notes(
        f"""
        ATIS, the more pairs the more units; three passes, 100 questions; CPU time; the peak is that of the process so
        far, which ran this table alone; before the first row it is {peak():.0f}
        """
    )
    questions, _ = funql("atis", "test", slice(100))
    for n in GROWTH[:2] if quick else GROWTH:
        X, y = funql("atis", "train", slice(n))
        with Clock() as training:
            parser = SemanticParser(max_iter=3, random_state=0).fit(X, y)
        with Clock() as predicting:
            parser.predict(questions)
        row = {"n": n, "units": len(parser.symbols_), "features": 1e-6 * parser.model_.hybrid.n_features}
        row |= {"train": 1e3 * training.cpu / (3 * n), "predict": 1e3 * predicting.cpu / len(questions)}
        made.rows.append(row | {"memory": peak()})
        yield made


def words(title, quick):
    columns = {"n": ("words", "d"), "chart": ("chart, ms", ".2f"), "ratio": ("to the row before", ".1f")}
    columns |= {"predict": ("ms a sentence", ".1f"), "memory": ("peak memory, MB", ".0f")}
    made = Table(title, columns)
    made.notes = notes(
        """
        GeoQuery's test questions, one after the other and cut to so many words; trained on 300 questions; five
        sentences. chart: the best derivation's score among all meanings with the same leaves; the rest is the search
        for the best meanings, which text without a meaning, as this is from two questions on, keeps until its bound;
        the peak is that of the process so far, which ran this table alone
        """
    )
    geo = fetch_geoquery()
    parser = SemanticParser(grammar=geo.grammar, max_iter=3, random_state=0).fit(geo.X_train[:300], geo.y_train[:300])
    text = " ".join(geo.X_test).split()
    hybrid, weights, before = parser.model_.hybrid, parser.model_.weights, None
    forest = hybrid.free(hybrid.lexicon.called(text[:10]))
    for n in LENGTHS[:2] if quick else LENGTHS:
        sentences = [text[k * n : k * n + n] for k in range(5)]
        encoded = [hybrid.encode(words) for words in sentences]
        repeat = max(1000 // n**2, 1)
        with Clock() as clock:
            for sentence in encoded * repeat:
                hybrid.chart.log_sum(sentence, forest, weights, best=True)
        row = {"n": n, "chart": 1e3 * clock.cpu / (repeat * len(sentences))}
        row["ratio"] = None if before is None else row["chart"] / before
        before = row["chart"]
        with Clock() as clock:
            parser.predict(sentences)
        made.rows.append(row | {"predict": 1e3 * clock.cpu / len(sentences), "memory": peak()})
        yield made


def text(title, quick):
    columns = {"data": ("data", ""), "what": ("", ""), "whole": ("from text, ms a sentence", ".2f")}
    columns |= {"floor": ("charts alone", ".2f"), "ratio": ("x floor", ".1f")}
    made = Table(title, columns)
    made.notes = notes(
        f"""
        {N_TEXT} sentences to train on, 100 to predict; CPU time. Training, a sentence and pass of {PASSES}: from
        text of sentences and of meanings to weights; charts alone: the steps, attributes and forests given. Prediction:
        from text to the most probable meaning; charts alone: the best derivation's score and the sum of all, attributes
        and forest given, without reading derivations off and the sums of the {CONSIDERED} meanings that are considered
        """
    )
    geo = fetch_geoquery()
    for name, (X, y), (questions, _), grammar in (
        ("GeoQuery", (geo.X_train, geo.y_train), (geo.X_test, None), geo.grammar),
        ("ATIS", funql("atis", "train", slice(N_TEXT)), funql("atis", "test", slice(100)), None),
    ):
        X, y, questions = X[: 100 if quick else N_TEXT], y[: 100 if quick else N_TEXT], questions[:100]
        with Clock() as whole:
            parser = SemanticParser(grammar=grammar, max_iter=PASSES, random_state=0).fit(X, y)
        model = parser.model_
        hybrid, read = model.hybrid, model.read(X, y)
        tokens, bags = read.sentences, read.bags
        problem, solver = HybridProblem(hybrid, tokens, bags), BagLikelihood()
        learner = Learner(first_weights(hybrid, tokens, bags), PENALTY, paces(hybrid))
        given = [problem.of_pass(i, k) for k in range(2) for i in range(len(X))]
        with Clock() as charts:
            for of_pass in given:
                solver.step(problem, of_pass, learner, 1.0, 0.0)
        made.rows.append(of_clocks(name, "training", whole.cpu / (PASSES * len(X)), charts.cpu / len(given)))
        with Clock() as whole:
            parser.predict(questions)
        words = [[token[0] for token in sentence] for sentence in model.tokens_of(questions)]
        given = [(hybrid.encode(sentence), hybrid.meant(sentence)) for sentence in words]
        with Clock() as charts:
            for sentence, forest in given:
                hybrid.chart.log_sum(sentence, forest, model.weights, best=True)
                hybrid.sums.log_sum(sentence, forest, model.weights)
        made.rows.append(of_clocks(name, "prediction", whole.cpu / len(questions), charts.cpu / len(questions)))
        yield made


def of_clocks(data, what, whole, floor):
    return {"data": data, "what": what, "whole": 1e3 * whole, "floor": 1e3 * floor, "ratio": whole / floor}
