"""Limits of what compressed sources unfold to, whatever reads them."""

import bz2
import gzip
import lzma
import tracemalloc
from functools import cache

import pytest

from structsvm.datasets import _fetch
from structsvm.features import sources
from structsvm.features.columns import ColumnFileError, read_columns
from structsvm.features.sources import CEILING, FLOOR, LIMIT, RATIO, DamagedFileError, decompress, unfolding_limit
from structsvm.features.svmlight import read_svmlight
from structsvm.structures.bag_lines import read_bags
from structsvm.structures.trees import read_trees
from structsvm.tasks.alignment.files import read_alignments
from structsvm.tasks.taxonomy.documents import read_documents

COMPRESS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
SIZE = 2**25


@cache
def bomb(suffix):
    return COMPRESS[suffix](b"a b\n" * (SIZE // 32)) * 8  # eight members


READERS = [read_columns, read_svmlight, read_bags, read_trees, read_alignments, read_documents]


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("reader", READERS)
def test_a_bomb_is_refused_by_every_reader(tmp_path, monkeypatch, suffix, reader):
    monkeypatch.setenv(LIMIT, "1000000")
    path = tmp_path / f"bomb.{suffix}"
    path.write_bytes(bomb(suffix))
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"bomb\.{suffix}.* unfold to more than 1000000; .*{LIMIT}"):
        reader(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < SIZE // 2  # it is left after the first block too many; xz has a dictionary of 8 MB


@pytest.mark.parametrize("suffix", COMPRESS)
def test_the_limit_is_exact(monkeypatch, suffix):
    text = bytes(range(256)) * 20_000
    data = COMPRESS[suffix](text[:2_000_000]) + COMPRESS[suffix](text[2_000_000:])  # members in a row are one text
    monkeypatch.setenv(LIMIT, str(len(text)))
    assert decompress(data, "d") == text
    monkeypatch.setenv(LIMIT, str(len(text) - 1))
    with pytest.raises(DamagedFileError, match=f"^d: {len(data)} bytes of "):
        decompress(data, "d")
    monkeypatch.delenv(LIMIT)
    assert decompress(data, "d") == text


def test_what_is_not_compressed_has_no_limit(monkeypatch):
    monkeypatch.setenv(LIMIT, "1")
    assert decompress(b"a b\n", "d") == b"a b\n"


def test_the_default_limit(monkeypatch):
    monkeypatch.delenv(LIMIT, raising=False)
    assert unfolding_limit(1) == FLOOR == unfolding_limit(FLOOR // RATIO) == 2**25
    assert unfolding_limit(10**7) == 25 * 10**7
    assert unfolding_limit(10**12) == CEILING == 2**34


@pytest.mark.parametrize("suffix", COMPRESS)
def test_what_is_beyond_the_floor_is_counted_before_it_is_held(monkeypatch, suffix):
    monkeypatch.setattr(sources, "FLOOR", 2**21)
    monkeypatch.setattr(sources, "RATIO", 1)
    monkeypatch.delenv(LIMIT, raising=False)
    tracemalloc.start()
    with pytest.raises(DamagedFileError, match="unfold to more than 2097152"):
        decompress(bomb(suffix), "d")
    monkeypatch.setenv(LIMIT, str(SIZE - 1))
    with pytest.raises(DamagedFileError, match=f"unfold to more than {SIZE - 1}"):
        decompress(bomb(suffix), "d")
    assert tracemalloc.get_traced_memory()[1] < SIZE // 2  # xz has a dictionary of 8 MB
    tracemalloc.stop()
    monkeypatch.setenv(LIMIT, str(SIZE))
    assert decompress(bomb(suffix), "d") == b"a b\n" * (SIZE // 4)


@pytest.mark.parametrize("text", ["", "much", "-1", "1e9", "9" * 19, "٣"])
def test_a_limit_that_is_none(monkeypatch, text):
    monkeypatch.setenv(LIMIT, text)
    with pytest.raises(ValueError, match=f"environment variable {LIMIT} must be a number of bytes"):
        decompress(gzip.compress(b"a"), "d")


def test_data_sets_are_unfolded_by_the_same_rule(monkeypatch):
    monkeypatch.setenv(LIMIT, "10")
    name, source = next((name, source) for name, source in _fetch.SOURCES.items() if any(
        file.endswith(".gz") for file in source.sha256))  # fmt: skip
    file = next(file for file in source.sha256 if file.endswith(".gz"))
    with pytest.raises(_fetch.DatasetUnavailableError, match="unfold to more than 10"):
        _fetch._checked(source, file, gzip.compress(b"a" * 11), name)


def test_the_error_of_columns_is_theirs(tmp_path, monkeypatch):
    monkeypatch.setenv(LIMIT, "3")
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"a b\n"))
    with pytest.raises(ColumnFileError, match="unfold to more than 3"):
        read_columns(tmp_path / "c.gz")
