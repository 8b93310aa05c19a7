"""Cells per second: structsvm, Biopython, and parasail if it is installed; one query against many strings."""

from __future__ import annotations

import numpy as np

from common.measure import package_version, repeat
from common.report import Table, notes
from structsvm.datasets import fetch_prefab, fetch_substitution_matrix
from structsvm.dual.parallel import Rounds
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.model import AlignmentModel, StringPool

OPEN, EXTEND = -11.0, -1.0
COLUMNS = {
    "what": ("", ""),
    "mode": ("mode", ""),
    "score": ("scores only, Mcells/s", ",.0f"),
    "align": ("with alignment, Mcells/s", ",.0f"),
    "score_ratio": ("structsvm is x times as fast", ".1f"),
    "align_ratio": ("with alignment", ".1f"),
}
SEARCH = {
    "what": ("", ""),
    "mode": ("mode", ""),
    "score": ("scores only, Mcells/s", ",.0f"),
    "score_ratio": ("structsvm in 16 bits is x times as fast", ".1f"),
}
TRAINING = {
    "what": ("one round of the oracle over the training pairs", ""),
    "cpu": ("CPU s", ".3f"),
    "pair": ("ms a pair", ".3f"),
    "rate": ("Mcells/s", ",.0f"),
}


PARASAIL = {"global": "nw", "local": "sw"}


def run(options):
    data = fetch_prefab()
    X = data.X_test[: 20 if options.quick else None]
    cells = sum(len(x) * len(z) for x, z in X)
    yield speeds(X, cells, options.repeat)
    yield searches(X, options.repeat)
    yield training(data.X_train, data.y_train, options)


def speeds(X, cells, times):
    rows = []
    for mode in ("global", "local"):
        ours = structsvm_rates(X, cells, mode, times)
        scores = ours.pop("scores")
        rows.append({"what": "structsvm", "mode": mode, **ours})
        for name, measure in (("Biopython, PairwiseAligner", biopython_rates), ("parasail", parasail_rates)):
            for what, rates in measure(X, cells, mode, times, scores):
                ratios = {f"{k}_ratio": ours[k] / v for k, v in rates.items()}
                rows.append({"what": f"{name}{what}", "mode": mode, **rates, **ratios})
    title = f"Speed: {len(X)} pairs of PREFAB, {cells / 1e6:.1f} million cells, BLOSUM62, gaps {OPEN:g}, {EXTEND:g}"
    absent = [] if package_version("parasail") else ["parasail is not installed here: not measured"]
    return Table(title, COLUMNS, rows, notes(NOTES) + absent)


def structsvm_rates(X, cells, mode, times):
    model = SequenceAligner.from_costs("BLOSUM62", OPEN, EXTEND, mode=mode).model_
    pool = StringPool(model.encoder)
    pairs = np.array([[pool.add(string, "string") for string in pair] for pair in X])
    strings = pool.strings()
    scorer = model.oracle.aligner(strings, pairs, traceback=False)
    aligner = model.oracle.aligner(strings, pairs)
    scores, only = repeat(lambda: scorer.scores(model.weights, pairs), times)
    found, whole = repeat(lambda: [aligner.align(model.weights, *pair) for pair in pairs.tolist()], times)
    assert np.array_equal(scores, [score for *_, score in found])
    return {"score": cells / only.cpu / 1e6, "align": cells / whole.cpu / 1e6, "scores": scores}


def biopython_rates(X, cells, mode, times, wanted):
    from Bio.Align import PairwiseAligner, substitution_matrices

    matrix = fetch_substitution_matrix("BLOSUM62")
    aligner = PairwiseAligner()
    aligner.substitution_matrix = substitution_matrices.Array(matrix.alphabet, 2, matrix.values)
    aligner.open_gap_score, aligner.extend_gap_score, aligner.mode = OPEN, EXTEND, mode
    X = known_letters(X)
    scores, only = repeat(lambda: [aligner.score(x, z) for x, z in X], times)
    _, whole = repeat(lambda: [aligner.align(x, z)[0].coordinates for x, z in X], times)
    assert np.array_equal(scores, wanted), "the scores differ"
    yield "", {"score": cells / only.cpu / 1e6, "align": cells / whole.cpu / 1e6}


def parasail_rates(X, cells, mode, times, wanted):
    if package_version("parasail") is None:
        return
    import parasail

    kind, matrix = PARASAIL[mode], parasail_matrix(parasail)
    X = known_letters(X)
    for variant, suffix in ((", scalar", ""), (", striped, 16 bits", "_striped_16")):
        score, trace = (getattr(parasail, kind + part + suffix) for part in ("", "_trace"))
        scores, only = repeat(lambda f=score: [f(x, z, -int(OPEN), -int(EXTEND), matrix).score for x, z in X], times)
        _, whole = repeat(lambda f=trace: [f(x, z, -int(OPEN), -int(EXTEND), matrix).cigar.seq for x, z in X], times)
        assert np.array_equal(scores, wanted), "the scores differ"
        yield variant, {"score": cells / only.cpu / 1e6, "align": cells / whole.cpu / 1e6}


def parasail_matrix(parasail):
    values = fetch_substitution_matrix("BLOSUM62")
    matrix = parasail.matrix_create(values.alphabet, 1, -1)
    for place, value in np.ndenumerate(values.values):
        matrix[place] = int(value)
    return matrix


def searches(X, times):
    """Each tenth x against all z."""
    X = known_letters(X)
    queries, targets = [x for x, _ in X[::10]], [z for _, z in X]
    cells = sum(map(len, queries)) * sum(map(len, targets))
    rows = []
    for mode in ("global", "local"):
        clocks = search_clocks(queries, targets, mode, times)
        ours = next(iter(clocks.values()))
        for what, clock in clocks.items():
            ratio = {} if clock is ours else {"score_ratio": clock.cpu / ours.cpu}
            rows.append({"what": what, "mode": mode, "score": cells / clock.cpu / 1e6} | ratio)
    title = f"One against many: {len(queries)} queries, {len(targets)} strings each, {cells / 1e6:.0f} million cells"
    return Table(title, SEARCH, rows, notes(SEARCH_NOTES))


def search_clocks(queries, targets, mode, times):
    model = SequenceAligner.from_costs("BLOSUM62", OPEN, EXTEND, mode=mode).model_
    pool = StringPool(model.encoder)
    places = [[pool.add(string, "string") for string in strings] for strings in (queries, targets)]
    pairs = np.array([[x, z] for x in places[0] for z in places[1]])
    scorer = model.oracle.aligner(pool.strings(), pairs, traceback=False)
    scores, ours = repeat(lambda: scorer.scores(model.weights, pairs), times)
    assert scorer.n_striped == len(pairs)
    # Costs of a quarter have the same best alignments, and are no integers.
    quarters, exact = repeat(lambda: scorer.scores(model.weights / 4.0, pairs), times)
    assert scorer.n_striped == 0 and np.array_equal(scores, 4.0 * quarters)
    clocks = {"structsvm, 16 bits": ours, "structsvm, float64": exact}
    if package_version("parasail") is not None:
        values, clock = repeat(lambda: parasail_profiles(queries, targets, mode), times)
        assert np.array_equal(scores, values), "the scores differ"
        clocks["parasail, striped, 16 bits, profiles of the queries"] = clock
    return clocks


def parasail_profiles(queries, targets, mode):
    import parasail

    matrix, align = parasail_matrix(parasail), getattr(parasail, f"{PARASAIL[mode]}_striped_profile_16")
    profiles = (parasail.profile_create_16(query, matrix) for query in queries)
    return [align(profile, z, -int(OPEN), -int(EXTEND)).score for profile in profiles for z in targets]


def known_letters(X):
    """The strings as `alphabet="protein"` reads them."""
    letters = str.maketrans("BZUOJ", "XXCKX")
    return [tuple(string.translate(letters) for string in pair) for pair in X]


def training(X, y, options):
    n = 100 if options.quick else None
    rows = []
    for what, settings, formulation in (
        ("Q loss, margin rescaling, linear", {}, {}),
        ("zero-one loss", {"loss": "zero_one"}, {}),
        ("Q loss, slack rescaling (counts), 20 pairs", {}, {"rescaling": "slack"}),
    ):
        few = 20 if formulation else n
        aligner = SequenceAligner.from_costs("BLOSUM62", OPEN, EXTEND, **settings)
        model: AlignmentModel = aligner.model_
        problem = model.oracle.bind_references(model.references(X[:few], y[:few]), **formulation)
        cells = sum(len(x) * len(z) for x, z in X[:few])
        times = 1 if formulation else options.repeat
        _, clock = repeat(lambda p=problem, m=model: Rounds(p).violations(m.weights), times)
        count = problem.n_samples
        rows.append({"what": what, "cpu": clock.cpu, "pair": 1e3 * clock.cpu / count, "rate": cells / clock.cpu / 1e6})
    return Table(f"A round on PREFAB, {len(X[:n])} pairs, one core", TRAINING, rows, notes(ROUND_NOTES))


NOTES = """
One core, best CPU time of the runs, on encoded strings (structsvm) and on str (the others). The scores of all are
compared in the same run and are equal. structsvm: scores alone in 16 bits, these costs being integers; alignments in
float64.
"""
SEARCH_NOTES = """
What `SequenceAligner.decision_function` does: each query has one profile. One core, best CPU time of the runs, on
encoded strings (structsvm) and on str; profiles are part of the time. All scores are compared and are equal. Costs that
are no integers are summed in float64.
"""
ROUND_NOTES = """
What a batch solver pays for a round at the costs of BLOSUM62: the most violated alignment of every pair.
"""
