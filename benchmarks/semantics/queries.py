"""Questions to a map from the simulator: learning curves by the share of names that training has not seen, in three
languages of meanings, from pairs and from bags; and what more questions cost."""

from __future__ import annotations

from common.measure import Clock, peak
from common.report import Table, notes
from structsvm.datasets import make_queries
from structsvm.metrics import meaning_scores
from structsvm.tasks import SemanticParser

LANGUAGES = ("terms", "funql", "lambda")
UNSEEN = (0.0, 0.5, 1.0)
SIZES = (150, 300, 600)
GROWTH = (750, 1500, 3000, 6000)
LEVELS = (0, 1)
N_TEST = 300


def run(options):
    for name, table in {"curves": curves, "growth": growth}.items():
        if options.only in name:
            yield from table(f"Questions to a map: {name}", options.quick)


def curves(title, quick):
    """Exact F1 by language, bags, number of questions and the share of names in test questions that are unseen."""
    columns = {"language": ("meanings", ""), "level": ("others in a bag", "d"), "n": ("questions", "d")}
    made = Table(title, columns | {f"unseen {share}": (f"F1, {share:.0%} unseen", ".3f") for share in UNSEEN})
    made.notes = notes(
        f"""
        `make_queries`; exact match on {N_TEST} questions, one seed, the defaults. Others in a bag: on average, meanings
        of other questions
        """
    )
    for language in LANGUAGES:
        for level in LEVELS:
            for n in (50,) if quick else SIZES:
                made.rows.append({"language": language, "level": level, "n": n})
                for share in UNSEEN:
                    data = drawn(n, language, unseen=share, level=level)
                    parser = SemanticParser(random_state=0).fit(data.X_train, data.bags)
                    made.rows[-1][f"unseen {share}"] = f1_of(parser, data)
                yield made


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


def drawn(n, language, **options):
    """Questions, the same whatever the language."""
    return make_queries(n, N_TEST, language=language, random_state=0, **options)


def f1_of(parser, data):
    """Exact F1 on the test questions."""
    return meaning_scores(data.y_test, parser.predict(data.X_test)).f1
