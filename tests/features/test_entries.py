"""Entries of tokens that decoders do not look at again, and known runs of names: against the obvious ways."""

import itertools

import numpy as np
import pytest

from structsvm.features._tokens import are_entries, known_runs
from structsvm.features.tokens import Tokens
from structsvm.oracles.viterbi import ViterbiOracle


def entries(seed, values=False):
    rng = np.random.default_rng(seed)
    lengths, sizes = rng.integers(1, 4, 5), rng.integers(0, 4, 20)
    offsets = np.cumsum([0, *lengths]).astype(np.int64)
    indptr = np.cumsum([0, *sizes[: offsets[-1]]]).astype(np.int64)
    indices = rng.integers(0, 6, indptr[-1]).astype(np.int32)
    return [offsets, indptr, indices, rng.normal(size=indptr[-1]).astype(np.float32) if values else None]


def is_refused(arrays):
    """Whether the oracle refuses the tokens, and its message."""
    try:
        ViterbiOracle(2, 6).check_tokens(Tokens(*arrays, 6))
    except ValueError as error:
        return str(error)
    return None


@pytest.mark.parametrize("values", [False, True], ids=["ones", "values"])
@pytest.mark.parametrize("seed", range(5))
def test_sound_entries(seed, values):
    arrays = entries(seed, values)
    assert are_entries(*arrays, 6)
    assert is_refused(arrays) is None
    assert are_entries(*arrays, max(arrays[2].max(initial=-1) + 1, 0))
    assert not len(arrays[2]) or not are_entries(*arrays, arrays[2].max())


@pytest.mark.parametrize("seed", range(300))
def test_damaged_entries_are_found_and_named(seed):
    """One number of one array is another: what is told at a glance is what the message is about."""
    arrays, rng = entries(seed, values=True), np.random.default_rng(seed)
    array = arrays[rng.integers(0, 3)]
    if len(array):
        array[rng.integers(0, len(array))] = rng.choice([-1, 0, 1, 2, 5, 6, 2**31 - 1])
    offsets, indptr, indices, _ = arrays
    is_sound = (
        offsets[0] == indptr[0] == 0
        and offsets[-1] == len(indptr) - 1
        and indptr[-1] == len(indices)
        and (np.diff(offsets) > 0).all()
        and (np.diff(indptr) >= 0).all()
        and ((indices >= 0) & (indices < 6)).all()
    )
    assert are_entries(*arrays, 6) == is_sound
    assert (is_refused(arrays) is None) == is_sound


def unaligned(array):
    return np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype)


@pytest.mark.parametrize("change", [
    lambda array: array.astype(np.int16), lambda array: array.tolist(), lambda array: array.repeat(2)[::2],
    lambda array: array[None], lambda array: array.astype(array.dtype.newbyteorder()), unaligned, lambda array: None,
], ids=["type", "list", "strided", "2-D", "byte order", "unaligned", "none"])  # fmt: skip
@pytest.mark.parametrize("k", range(4))
def test_arrays_of_another_kind_are_refused(k, change):
    arrays = entries(3, values=True)
    arrays[k] = change(arrays[k])
    if k == 3 and arrays[k] is None:
        assert are_entries(*arrays, 6)
        return
    assert not are_entries(*arrays, 6)
    if arrays[k] is not None:
        assert "must be a contiguous array of" in is_refused(arrays)


def test_values_are_as_many_as_indices():
    arrays = entries(0, values=True)
    arrays[3] = arrays[3][:-1]
    assert not are_entries(*arrays, 6)
    assert "values" in is_refused(arrays)


# ---- known runs ---------------------------------------------------------------------------------


def slow_runs(offsets, names, sizes, keys):
    """Known runs by looking up every run of every length."""
    starts = [sum(len(k[m]) for k in keys for m in range(n)) for n in range(len(keys[0]) + 1)]
    found = [[] for _ in range(offsets[-1])]
    for first, last in itertools.pairwise(offsets):
        for t in range(first, last):
            for m in range(len(keys[0])):
                before = starts[m]
                for own, size, known in zip(names, sizes, keys, strict=True):
                    begin = t - m - 1
                    number = own[begin] if begin >= first else -1
                    for n in range(m + 1):
                        if number < 0 or own[begin + n + 1] < 0:
                            number = -1
                            break
                        at = np.flatnonzero(known[n] == number * size + own[begin + n + 1])
                        number = at[0] if len(at) else -1
                    if number >= 0:
                        found[t].append(before + number)
                    before += len(known[m])
    return found


@pytest.mark.parametrize("seed", range(30))
def test_runs_are_those_of_every_lookup(seed):
    rng = np.random.default_rng(seed)
    offsets = np.cumsum([0, *rng.integers(0, 6, 6)]).astype(np.int64)
    n_kinds, n_lengths = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    sizes = rng.integers(1, 4, n_kinds).tolist()
    names = [rng.integers(-1, size, offsets[-1]).astype(np.int64) for size in sizes]
    keys = []
    for size in sizes:
        before, own = size, []
        for _ in range(n_lengths):
            every = np.arange(before * size)
            own.append(np.sort(rng.permutation(every)[: rng.integers(0, len(every) + 1)]).astype(np.int64))
            before = len(own[-1])
        keys.append(own)
    indptr, ids = known_runs(offsets, names, sizes, keys)
    assert ids.dtype == np.int32
    assert [ids[a:b].tolist() for a, b in itertools.pairwise(indptr)] == slow_runs(offsets, names, sizes, keys)


def test_no_names_have_no_runs():
    indptr, ids = known_runs(np.array([0, 2], dtype=np.int64), [], [], [])
    assert indptr.tolist() == [0, 0, 0] and not len(ids)


def test_names_are_as_many_as_tokens():
    with pytest.raises(ValueError, match="kind 0 has 1 names and 0 lengths"):
        known_runs(np.array([0, 2], dtype=np.int64), [np.zeros(1, dtype=np.int64)], [1], [[]])
