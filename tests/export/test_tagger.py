"""Tagger against the enumeration of all labellings."""

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest

from structsvm.export import Tagger

LABELS = ["a", "b", "c"]
NAMES = {"x": 0, "y:z": 1, "n:m:k": 2, "v": 3}
SEQUENCE = [["x"], {"y": "z", "v": 2.5}, {"n": {"m": ["k"]}, "x": True, "v": False}, {"unknown": 3, "y": ["z", "q"]}]
EXPECTED = [{"x": 1}, {"y:z": 1, "v": 2.5}, {"n:m:k": 1, "x": 1}, {"y:z": 1}]


def parts(seed, scale=1.0, pairs=False):
    rng = np.random.default_rng(seed)
    dense = {
        "weights": rng.normal(size=(4, 3)),
        "transitions": scale * rng.normal(size=(3, 3)),
        "start": rng.normal(size=3),
        "end": rng.normal(size=3),
        "pairs": rng.normal(size=(4, 9)) * pairs,
    }
    options = {"start": dense["start"], "end": dense["end"]}
    if pairs:
        options |= {
            "pair_starts": np.arange(0, 37, 9),
            "pair_targets": np.tile(np.arange(9), 4),
            "pair_weights": dense["pairs"].ravel(),
        }
    tagger = Tagger(
        LABELS,
        NAMES,
        np.arange(0, 13, 3),
        np.tile(np.arange(3), 4),
        dense["weights"].ravel(),
        dense["transitions"],
        **options,
    )
    return tagger, dense


def brute(dense):
    scores = {}
    for path in itertools.product(range(3), repeat=len(EXPECTED)):
        score = dense["start"][path[0]] + dense["end"][path[-1]]
        for t, token in enumerate(EXPECTED):
            score += sum(value * dense["weights"][NAMES[name], path[t]] for name, value in token.items())
            if t:
                pair = 3 * path[t - 1] + path[t]
                score += dense["transitions"].flat[pair]
                score += sum(value * dense["pairs"][NAMES[name], pair] for name, value in token.items())
        scores[path] = score
    return scores


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("seed", range(5))
def test_enumeration(seed, scale, pairs):
    tagger, dense = parts(seed, scale, pairs)
    scores = brute(dense)
    names = {path: [LABELS[y] for y in path] for path in scores}
    ranked = sorted(scores, key=lambda path: -scores[path])
    total = np.logaddexp.reduce(list(scores.values()))
    assert tagger.tag(SEQUENCE) == names[ranked[0]]
    assert tagger.score(SEQUENCE, names[ranked[3]]) == pytest.approx(scores[ranked[3]])
    assert tagger.log_partition(SEQUENCE) == pytest.approx(total)
    assert tagger.probability(SEQUENCE, names[ranked[1]]) == pytest.approx(np.exp(scores[ranked[1]] - total))
    expected = np.zeros((4, 3))
    for path, score in scores.items():
        expected[range(4), path] += np.exp(score - total)
    assert tagger.marginals(SEQUENCE) == pytest.approx(expected, abs=1e-12)
    best = tagger.kbest(SEQUENCE, 100)
    assert [score for score, _ in best] == pytest.approx([scores[path] for path in ranked])
    assert sorted(labels for _, labels in best) == sorted(names.values())
    assert tagger.kbest(SEQUENCE, 5) == best[:5]
    assert pickle.loads(pickle.dumps(tagger)).kbest(SEQUENCE, 5) == best[:5]


def test_ties_go_to_the_first_label():
    tagger = Tagger(LABELS, {}, [0], [], [], np.zeros((3, 3)))
    assert tagger.tag([["x"], ["x"]]) == ["a", "a"]
    assert tagger.kbest([["x"]], 2) == [(0.0, ["a"]), (0.0, ["b"])]


def test_names_below_names():
    """A name that has colons is found however tokens nest it; one more or less character is another name."""
    names = {"a:b:c": 0, "a:b": 1, "a": 2, "a:": 3, "a;": 4, "a:b:": 5, "ab:c": 6, ":x": 7}
    weights = 2.0 ** np.arange(8)
    tagger = Tagger(["y"], names, np.arange(9), np.zeros(8), weights, [[0.0]])
    for token, found in (
        ({"a": {"b": "c"}}, [0]),
        ({"a:b": "c"}, [0]),
        ({"a": "b:c"}, [0]),
        ({"a": {"b": ["c"]}}, [0]),
        ({"a": ["b:c", "b", ""]}, [0, 1, 3]),
        ({b"a": b"b"}, [1]),
        ({"a": {"b": True}}, [1]),
        ({"a": True, "a;": 1}, [2, 4]),
        ({"a": ""}, [3]),
        ({"a": {"b": ""}}, [5]),
        ({"ab": "c", "": "x"}, [6, 7]),
        ({"b": "c", "a:b:c:d": 1, "a": {"c": 1}}, []),
        ([b"a", "a;"], [2, 4]),
        ({"a": False, "ab:c": np.True_}, [6]),
    ):
        assert tagger.score([token], ["y"]) == sum(weights[found]), token


def test_names_without_end():
    tagger, _ = parts(0)
    for k in range(10_000):
        assert tagger.log_partition([{str(k): "z"}, {"y": "z"}]) == tagger.log_partition([{}, {"y": "z"}])


@pytest.mark.parametrize("pairs", [False, True])
def test_a_lattice_stands_for_its_sequence(pairs):
    tagger, _ = parts(1, pairs=pairs)
    lattice, labels = tagger.lattice(SEQUENCE), ["a", "c", "b", "b"]
    for _ in range(2):
        assert tagger.tag(lattice) == tagger.tag(SEQUENCE)
        assert tagger.score(lattice, labels) == tagger.score(SEQUENCE, labels)
        assert tagger.probability(lattice, labels) == tagger.probability(SEQUENCE, labels)
        assert np.array_equal(tagger.marginals(lattice), tagger.marginals(SEQUENCE))
        assert tagger.kbest(lattice, 4) == tagger.kbest(SEQUENCE, 4)
    assert [lattice.into(t) is None for t in range(4)] == ([True, False, False, False] if pairs else [True] * 4)
    with pytest.raises(IndexError, match="between 0 and 3, got 4"):
        lattice.into(4)
    with pytest.raises(ValueError, match="another tagger's"):
        parts(1)[0].tag(lattice)


def test_no_tokens():
    tagger, _ = parts(0)
    assert tagger.tag([]) == []
    assert tagger.log_partition([]) == 0
    assert tagger.probability([], []) == 1
    assert tagger.marginals([]).shape == (0, 3)


@pytest.mark.parametrize(
    ("sequence", "error", "message"),
    [
        (["x"], TypeError, "token 0 is the text 'x'"),
        ([[], [3]], TypeError, "token 1: attributes must be str, got 3"),
        ([{"v": float("nan")}], ValueError, "token 0: feature 'v' must be finite"),
        ([{"v": None}], TypeError, "token 0: feature 'v' must be a number"),
    ],
)
def test_refused_tokens(sequence, error, message):
    with pytest.raises(error, match=message):
        parts(0)[0].tag(sequence)


def test_deep_nesting_is_refused():
    token = {"x": 1}
    for _ in range(100):
        token = {"x": token}
    with pytest.raises(ValueError, match="deeper than 64"):
        parts(0)[0].tag([token])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": []}, "labels must be at least one"),
        ({"labels": ["a", "a"]}, "each once"),
        ({"attributes": {"x": 1}}, "rows between 0 and 0"),
        ({"starts": [0, 2]}, "must rise from 0 to the number of weights, 1"),
        ({"targets": [2]}, "targets must be between 0 and 1"),
        ({"weights": [np.nan]}, "weights must be finite"),
        ({"transitions": np.zeros((3, 2))}, r"transitions must have shape \(2, 2\)"),
    ],
)
def test_refused_weights(change, message):
    good = {
        "labels": ["a", "b"],
        "attributes": {"x": 0},
        "starts": [0, 1],
        "targets": [1],
        "weights": [1.0],
        "transitions": np.zeros((2, 2)),
    }
    assert Tagger(**good).tag([["x"]]) == ["b"]
    with pytest.raises(ValueError, match=message):
        Tagger(**(good | change))


def test_labels_are_as_many_as_tokens_and_known():
    tagger, _ = parts(0)
    with pytest.raises(ValueError, match="as many as tokens, 4, got 1"):
        tagger.score(SEQUENCE, ["a"])
    with pytest.raises(ValueError, match="labels\\[1\\] is 'q'"):
        tagger.score(SEQUENCE, ["a", "q", "a", "a"])


def test_imports_no_scipy():
    code = "import sys, structsvm.export; print({'scipy', 'sklearn', 'structsvm.tasks'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
