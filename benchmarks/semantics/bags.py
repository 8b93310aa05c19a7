"""Hybrid trees: ATIS from bags, bags without the right meaning, learning curves, growth with units and words."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from common.measure import Clock, peak
from common.report import Table, notes
from semantics.hybrid import funql, measured
from structsvm.datasets import fetch_geoquery
from structsvm.tasks import SemanticParser

N_ATIS = 300
SHARES = (0.1, 0.3, 0.5)
SIZES = (75, 150, 300)
GROWTH = (125, 250, 500)
LENGTHS = (10, 20, 40, 80)
SCORES = {
    "precision": ("precision", ".3f"),
    "recall": ("recall", ".3f"),
    "f1": ("F1", ".3f"),
    "train": ("train, CPU s", ".1f"),
    "predict": ("ms a sentence", ".1f"),
}


def run(options):
    made = {
        "ATIS from bags": atis,
        "noise": noise,
        "learning curves": curves,
        "growth with units": units,
        "growth with words": words,
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


def atis(title, quick):
    made = Table(title, {"level": ("level", "d"), "size": ("meanings a bag", ".2f"), "way": ("way", "")} | SCORES)
    n = 100 if quick else N_ATIS
    made.notes = notes(
        f"""
        exact match; {n} questions of ATIS's training part, all of its test part; bags made as GeoQuery's are; no
        grammar, one seed, the defaults; template: as in the tables beside this one

        all questions of training would take ten minutes and more a level
        """
    )
    X, y = funql("atis", "train", slice(n))
    test = funql("atis", "test", slice(100 if quick else None))
    for level in (0, 1, 2, 3):
        bags = made_ambiguous(y, level, "atis")
        for way in ("template", "hybrid"):
            values = dict(zip(SCORES, measured(way, X, bags, *test, None, 0), strict=True))
            made.rows.append({"level": level, "size": np.mean([*map(len, bags)]), "way": way} | values)
            yield made


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
            row[f"level {level}"] = measured("hybrid", geo.X_train, bags, geo.X_test, geo.y_test, geo.grammar, 0)[2]
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
    columns = {"n": ("words", "d"), "predict": ("ms a sentence", ".1f"), "each": ("ms a word", ".2f")}
    made = Table(title, columns | {"memory": ("peak memory, MB", ".0f")})
    made.notes = notes(
        """
        GeoQuery's test questions, one after the other and cut to so many words; trained on 300 questions; the work of a
        chart grows with the cube of the words; the peak is that of the process so far, which ran this table alone
        """
    )
    geo = fetch_geoquery()
    parser = SemanticParser(grammar=geo.grammar, max_iter=3, random_state=0).fit(geo.X_train[:300], geo.y_train[:300])
    text = " ".join(geo.X_test).split()
    for n in LENGTHS[:2] if quick else LENGTHS:
        sentences = [text[k * n : k * n + n] for k in range(5)]
        with Clock() as clock:
            parser.predict(sentences)
        ms = 1e3 * clock.cpu / len(sentences)
        made.rows.append({"n": n, "predict": ms, "each": ms / n, "memory": peak()})
        yield made
