"""The bounds of every number that solvers and estimators take: what lies on them, and what lies just beyond."""

import inspect
import math
import sys
from types import SimpleNamespace

import pytest

from structsvm import PathSearch, solvers, tasks
from structsvm.parameters import FLAG, Interval, ParameterGroup, validate

TINY, HUGE = 5e-324, sys.float_info.max


def whole(least, largest=2**31 - 1):
    return [least, least + 1, largest], [least - 1, least + 0.5, largest + 1, math.inf]


POSITIVE = [TINY, 1, HUGE], [0.0, -1.0, math.inf]
NOT_NEGATIVE = [0.0, 1, HUGE], [-TINY, math.inf]
FINITE = [-HUGE, 0, HUGE], [-math.inf, math.inf]
SHARE = [TINY, 1.0 - 2**-53], [0.0, 1.0]

# Accepted and refused values, by the name of the parameter.
NUMBERS = {
    **dict.fromkeys(
        [
            "C",
            "C_max",
            "l1",
            "C_min",
            "alpha",
            "cache_size",
            "delta_max",
            "gamma",
            "learning_rate",
            "qp_tol",
            "t0",
            "tau",
            "tol",
        ],
        POSITIVE,
    ),
    **dict.fromkeys(["epsilon", "margin"], NOT_NEGATIVE),
    "n_reprocess": ([0.0, 1, 1e6], [-TINY, math.nextafter(1e6, 2e6), math.inf]),
    "coef0": FINITE,
    **dict.fromkeys(["band", "h", "max_unary", "n_cached", "order", "refine", "role_window", "window"], whole(0)),
    **dict.fromkeys(["max_iter", "max_length", "max_meanings", "max_sweeps", "max_visits"], whole(1)),
    **dict.fromkeys(["max_chart_bytes", "max_weights"], whole(1, 2**63 - 1)),
    **dict.fromkeys(["budget", "k", "min_count", "ngrams", "rounds", "v"], whole(1)),
    "n_jobs": ([1, 2, -1, None], [0, -2, 1.5]),
    "degree": whole(0, 2**31 - 2),
    **dict.fromkeys(["arc_bits", "row_bits"], whole(1, 28)),
    "max_table": whole(2, 2**28),
    "n_folds": whole(2),
    "segments": whole(2, 1000),
    "bits": whole(1, 24),
    "hash_bits": whole(1, 30),
    "dimension": whole(1, 2**12),
    "hidden": whole(1, 2**14),
    "random_state": whole(0, 2**32 - 1),
    "validation_fraction": SHARE,
    "l1_ratio": ([TINY, 0.5, 1.0], [0.0, math.nextafter(1.0, 2.0)]),
    "abstain_below": ([0.0, 0.5, 1.0], [-TINY, math.nextafter(1.0, 2.0)]),
}
OF_ONE = {"PathSearch.tol": SHARE, "LatentSVM.tol": NOT_NEGATIVE}
OF_ONE |= {"Ospas.ngrams": whole(1, 1000)} | dict.fromkeys(["Ospas.role_window", "Ospas.window"], whole(0, 1000))
OF_ONE |= {"ConceptLabeler.window": whole(0, 2**10)}
OF_ONE["DependencyParser.order"] = whole(1, 2)
OF_ONE |= dict.fromkeys(["Tracking.n_reprocess", "TrackingClassifier.n_reprocess"], whole(1, 2**31 - 1))

KINDS = [
    kind
    for kind in (*(getattr(room, name) for room in (solvers, tasks) for name in room.__all__), PathSearch)
    if isinstance(kind, type) and hasattr(kind, "_constraints") and kind is not solvers.Solver
]


def accepts(kind, name, value):
    try:
        validate(SimpleNamespace(**{name: value}), {name: kind._constraints[name]})
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_bounds(kind):
    taken = inspect.signature(kind).parameters
    for name in taken.keys() & NUMBERS.keys():
        inside, outside = OF_ONE.get(f"{kind.__name__}.{name}", NUMBERS[name])
        for value in (*inside, taken[name].default):
            assert accepts(kind, name, value), (name, value)
        for value in (*outside, math.nan, "1", *(() if FLAG in kind._constraints[name] else (True,))):
            assert not accepts(kind, name, value), (name, value)


SHARED = {"cache_size": 200, "checkpoint": None, "n_jobs": None, "random_state": None}
SHARED |= {"verbose": False, "warm_start": False, "gamma": "auto", "degree": 3, "coef0": 0.0}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_shared_parameters_have_one_default(kind):
    taken = inspect.signature(kind).parameters
    defaults = {name: taken[name].default for name in taken.keys() & SHARED.keys()}
    assert defaults == {name: SHARED[name] for name in defaults}
    # Weston-Watkins and pairs have no chance; LatentSVM and TaggedParser that of the solver and the estimators in them.
    assert (
        "random_state" in defaults
        or kind.__name__.startswith(("WestonWatkins", "Pairwise"))
        or kind in (solvers.LatentSVM, tasks.TaggedParser)
        or issubclass(kind, ParameterGroup)
    )


def test_every_number_is_in_the_table():
    found = {
        name
        for kind in KINDS
        for name, allowed in kind._constraints.items()
        if name in inspect.signature(kind).parameters
        and any(isinstance(one, Interval) for one in (allowed if isinstance(allowed, tuple) else (allowed,)))
    }
    assert found == NUMBERS.keys()
    assert len(KINDS) >= 27
