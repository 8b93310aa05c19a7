"""Questions to a map from the simulator: learning curves by the share of names that training has not seen, in three
languages of meanings, from pairs and from bags, names of training met once or again; the units that were found; what
more questions cost."""

from __future__ import annotations

import numpy as np

from common.measure import Clock, peak
from common.report import Table, notes
from semantics.hybrid import funql
from structsvm.datasets import fetch_geoquery, make_queries
from structsvm.metrics import meaning_scores
from structsvm.oracles.meanings.lexicon import FEWEST_NAMES
from structsvm.structures.meaning_units import around, around_text
from structsvm.tasks import SemanticParser

LANGUAGES = ("terms", "funql", "lambda")
UNSEEN = (0.0, 0.5, 1.0)
SIZES = (150, 600)
GROWTH = (750, 1500, 3000, 6000)
LEVELS = (0, 1)
# Names that training draws from: all of some 10,000, or so many, which are met again and again.
NAMES = {"once": None, "again": 100}
SEEDS = 3
N_TEST = 300
N_FOUND = 600


def run(options):
    for name, table in {"curves": curves, "units": units, "growth": growth}.items():
        if options.only in name:
            yield from table(f"Questions to a map: {name}", options.quick)


def curves(title, quick):
    """Exact F1 by language, bags, number of questions and the share of names in test questions that are unseen."""
    columns = {"language": ("meanings", ""), "level": ("others in a bag", "d"), "names": ("names met", "")}
    columns |= {"n": ("questions", "d")} | {f"unseen {share}": (f"F1, {share:.0%} unseen", ".3f") for share in UNSEEN}
    seeds = 1 if quick else SEEDS
    made = Table(title, columns | {"spread": ("sd of seeds, 50% unseen", ".3f"), "train": ("train, CPU s", ".1f")})
    made.notes = notes(
        f"""
        `make_queries`; exact match on {N_TEST} questions, the mean of {seeds} draws, the defaults, choice included.
        Others in a bag: on average, meanings of other questions. Names met again: of {NAMES["again"]}, the k-th as
        often as 1 / k
        """
    )
    for language in LANGUAGES:
        for level in LEVELS:
            for names, n_names in NAMES.items():
                for n in (50,) if quick else SIZES:
                    options = {"level": level, "names": n_names}
                    runs = [of_shares(n, language, seed, **options) for seed in range(seeds)]
                    found = np.array([f1 for f1, _ in runs])
                    f1 = dict(zip([f"unseen {share}" for share in UNSEEN], found.mean(axis=0), strict=True))
                    row = {"language": language, "level": level, "names": names, "n": n} | f1
                    spread = float(found[:, UNSEEN.index(0.5)].std())
                    made.rows.append(row | {"spread": spread, "train": float(np.mean([cpu for _, cpu in runs]))})
                    yield made


def of_shares(n, language, seed, **options):
    """``(values, cpu)``: exact F1 for each share of unseen names, after one training, and its CPU seconds.

    Training questions are the same whatever the share; the bags are those of the first.
    """
    parts = [drawn(n, language, seed, unseen=share, **options) for share in UNSEEN]
    with Clock() as clock:
        parser = SemanticParser(random_state=seed).fit(parts[0].X_train, parts[0].bags)
    return [f1_of(parser, data) for data in parts], clock.cpu


def units(title, quick):
    """Units that are found in meanings, and how names are copied."""
    columns = {"data": ("data", ""), "relations": ("relations", "d"), "leaves": ("leaves", "d"), "kinds": ("names", "")}
    made = Table(title, columns)
    n = 50 if quick else N_FOUND
    made.notes = notes(
        f"""
        {n} questions to train on, no grammar; names: of each kind of {FEWEST_NAMES} or more how many there are, and *
        where others are copied from the question; relations and leaves are all other units, leaves those without slots
        """
    )
    geo = fetch_geoquery()
    given = {f"questions to a map, {language}": drawn(n, language, names=NAMES["again"]) for language in LANGUAGES}
    pairs = {name: (data.X_train, data.y_train) for name, data in given.items()}
    pairs |= {"GeoQuery": (geo.X_train[:n], geo.y_train[:n]), "ATIS": funql("atis", "train", slice(n))}
    for name, (X, y) in pairs.items():
        parser = SemanticParser(max_iter=1, random_state=0).fit(X, y)
        made.rows.append({"data": name} | units_of(parser))
        yield made


def units_of(parser):
    """Numbers of relations and of leaves, and the kinds of `FEWEST_NAMES` or more, of a parser."""
    hybrid = parser.model_.hybrid
    found, new = hybrid.units, {*hybrid.lexicon.new}
    others = [unit for unit, kind in zip(found.units, found.kinds, strict=True) if kind < len(found.units)]
    kinds = []
    for kind, members in found.members.items():
        first = found.units[members[0]].tree
        text = around_text(around(first)) if around(first) else f"like {first}"
        kinds += [f"`{text}` {len(members)}{'*' if kind in new else ''}"] if len(members) >= FEWEST_NAMES else []
    n_relations = sum(unit.n_slots > 0 for unit in others)
    return {"relations": n_relations, "leaves": len(others) - n_relations, "kinds": ", ".join(kinds)}


def growth(title, quick):
    """CPU time and memory by the number of questions, half of whose names are unseen."""
    columns = {"n": ("questions", "d"), "units": ("units", "d"), "features": ("features, million", ".2f")}
    made = Table(title, columns | {"train": ("train, CPU s", ".1f"), "f1": ("F1", ".3f"), "memory": ("peak MB", ".0f")})
    made.notes = notes("`make_queries`, terms, pairs, one seed, the defaults; the peak is that of all rows so far")
    for n in (150,) if quick else GROWTH:
        data = drawn(n, "terms")
        with Clock() as clock:
            parser = SemanticParser(random_state=0).fit(data.X_train, data.y_train)
        hybrid = parser.model_.hybrid
        values = {"n": n, "units": len(hybrid.units.units), "features": hybrid.n_features / 1e6, "train": clock.cpu}
        made.rows.append(values | {"f1": f1_of(parser, data), "memory": peak()})
        yield made


def drawn(n, language, seed=0, **options):
    """Questions, the same whatever the language."""
    return make_queries(n, N_TEST, language=language, random_state=seed, **options)


def f1_of(parser, data):
    """Exact F1 on the test questions."""
    return meaning_scores(data.y_test, parser.predict(data.X_test)).f1
