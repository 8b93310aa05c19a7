"""FASTA and A2M files of pairs."""

import gzip
import io
import sys

import numpy as np
import pytest

from structsvm.datasets import make_alignment, write_alignments
from structsvm.tasks import SequenceAligner
from structsvm.tasks.alignment.files import read_alignments, to_a2m
from structsvm.tasks.alignment.model import log_odds_matrix


def read(text, tmp_path, name="pairs.fa"):
    pytest.importorskip("Bio")
    path = tmp_path / name
    with (gzip.open if name.endswith(".gz") else open)(path, "wt") as stream:
        stream.write(text)
    return read_alignments(path)


def test_pairs_and_decoys(tmp_path):
    file = read(">P1 x\nAC\n-D\n>P1 z\nacTD\n>P1 d\nGG\n>P2 x\nA\n>P2 z\nA\n", tmp_path)
    assert file.names == ["P1", "P2"]
    assert file.rows == [("AC-D", "acTD"), ("A", "A")]
    assert file.pairs == [("ACD", "ACTD"), ("A", "A")]
    assert file.decoys == [["GG"], []] and not file.has_decoys
    file.check_aligned("pairs.fa")
    # Titles that do not say which belong together: every two records.
    file = read(">a\nAC\n>b\nA\n>c\nG\n>d\nG\n", tmp_path, "other.fa.gz")
    assert file.names == ["a", "c"] and file.pairs == [("AC", "A"), ("G", "G")]
    with pytest.raises(ValueError, match=r"other.fa, record 'a': the rows have 2 and 1 columns"):
        file.check_aligned("other.fa")
    assert read_alignments(io.StringIO(">a\nAC\n>b\nA\n")).pairs == [("AC", "A")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no FASTA records"),
        ("AC\n", "has no FASTA records"),
        (">a\n>b\nAC\n", r"record 1 \('a'\): has no letters"),
        (">a\nAC\n", r"record 1 \('a'\): has no partner"),
        (">a\nAC\n>b\nAC\n>c\nAC\n", r"record 3 \('c'\): has no partner"),
        (">a x\nAC\n>a z\nAC\n>b x\nAC\n>c x\nAC\n", r"record 3 \('b x'\): has no partner"),
    ],
)
def test_files_that_are_none(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(text, tmp_path)


def test_binary_files(tmp_path):
    pytest.importorskip("Bio")
    (tmp_path / "pairs.fa").write_bytes(b">a\n\xff\xfe\n")
    with pytest.raises(ValueError, match=r"pairs\.fa, line 2: bytes that are not UTF-8"):
        read_alignments(tmp_path / "pairs.fa")
    (tmp_path / "pairs.fa.gz").write_bytes(gzip.compress(b">a\nAC\n>b\nAC\n")[:-10])
    with pytest.raises(ValueError, match=r"pairs\.fa\.gz: damaged gzip data"):
        read_alignments(tmp_path / "pairs.fa.gz")


def test_without_biopython(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "Bio.SeqIO.FastaIO", None)
    monkeypatch.setitem(sys.modules, "Bio", None)
    with pytest.raises(ImportError, match=r"pip install 'structured-svm\[alignment\]'"):
        read_alignments(tmp_path / "pairs.fa")


def test_written_files_are_read(tmp_path):
    pytest.importorskip("Bio")
    data = make_alignment(5, n_decoys=3, random_state=0)
    write_alignments(tmp_path / "data.a2m.gz", data.y, data.decoys)
    # The same bytes at any time: no time of writing in the header of the compressed file.
    assert (tmp_path / "data.a2m.gz").read_bytes()[4:8] == bytes(4)
    file = read_alignments(tmp_path / "data.a2m.gz")
    assert file.rows == data.y and file.decoys == data.decoys and file.pairs == data.X
    with (tmp_path / "rows.a2m").open("w") as stream:
        stream.writelines(map(to_a2m, file.names, file.rows))
    assert read_alignments(tmp_path / "rows.a2m").rows == data.y
    with pytest.raises(ValueError, match="y has 5 alignments, and there are 2 lists"):
        write_alignments(tmp_path / "bad", data.y, data.decoys[:2])


@pytest.mark.parametrize(
    ("name", "value"), [("n_examples", 0), ("divergence", 1.5), ("length", 3), ("gap_length", 0.5)]
)
def test_simulations_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of make_alignment must be"):
        make_alignment(**{name: value})


def test_simulations():
    a, b = make_alignment(20, random_state=3), make_alignment(20, random_state=3)
    assert a == b
    assert all(len(d) == len(z) for (_, z), decoys in zip(a.X, a.decoys, strict=True) for d in decoys)
    assert all(len(x) == 50 for x, _ in a.X)


MANY = [("a", "MKV--LA"), ("b", "MKVxyLA"), ("c", "-KV--LA")]


def fasta(rows):
    return "".join(f">{name} about {name}\n{row}\n" for name, row in rows)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.a2m", fasta((name, row.replace("--L", "..L")) for name, row in MANY)),
        ("m.a3m", fasta((name, row.replace("--L", "L")) for name, row in MANY)),
        ("m.fa", fasta(MANY)),
        ("m.sto", "# STOCKHOLM 1.0\n" + "".join(f"{name} {row}\n" for name, row in MANY) + "//\n"),
        ("m.txt", "# STOCKHOLM 1.0\n" + "".join(f"{name} {row}\n" for name, row in MANY) + "//\n"),
        ("m", "CLUSTAL W (1.83)\n\n" + "".join(f"{name}    {row}\n" for name, row in MANY) + "\n"),
    ],
)
def test_alignments_of_many_rows(name, text, tmp_path):
    """Every format that has them gives the same pairs: insertions in columns of their own."""
    (tmp_path / name).write_text(text)
    found = read_alignments(tmp_path / name)
    assert found.names == ["a/b", "a/c", "b/c"]
    assert [tuple(row.replace(".", "-") for row in rows) for rows in found.rows] == [
        ("MKV--LA", "MKVxyLA"),
        ("MKVLA", "-KVLA"),
        ("MKVxyLA", "-KV--LA"),
    ]
    assert read_alignments(tmp_path / name, pairs="first").names == ["a/b", "a/c"]


def test_pairs_stay_pairs(tmp_path):
    """Equal first words, two records, and other lengths make no alignment of many."""
    for rows in ([("a", "MK-"), ("a", "MKV"), ("b", "M-V"), ("b", "MKV")], [("a", "MK-"), ("b", "MKV")]):
        (tmp_path / "p.a2m").write_text(fasta(rows))
        assert read_alignments(tmp_path / "p.a2m").names == [name for name, _ in rows[::2]]
    (tmp_path / "p.fa").write_text(fasta([("a", "MK-"), ("b", "MKV"), ("c", "M-VV"), ("d", "MKVV")]))
    assert read_alignments(tmp_path / "p.fa").names == ["a", "c"]
    (tmp_path / "p.a3m").write_text(fasta([("a", "MKV"), ("b", "MxKV"), ("c", "KV")]))
    with pytest.raises(ValueError, match=r"p\.a3m, alignment 1: the row of 'c' has 2 columns that are no insertions"):
        read_alignments(tmp_path / "p.a3m")


def test_a_file_in_lower_case(tmp_path):
    """All of it in lower case says nothing about insertions; a single upper-case letter does."""
    (tmp_path / "p").write_text(fasta([("a", "mk-l"), ("a", "mkvl")]))
    assert read_alignments(tmp_path / "p").rows == [("MK-L", "MKVL")]
    (tmp_path / "p").write_text(fasta([("a", "mk-l"), ("a", "mkvL")]))
    assert read_alignments(tmp_path / "p").rows == [("mk-l", "mkvL")]
    X, y = [("MKVLA", "MKVLGA"), ("KVLA", "KVLGA")] * 2, [("MKVL-A", "MKVLGA"), ("KVL-A", "KVLGA")] * 2
    lower = [tuple(map(str.lower, rows)) for rows in y]
    one, other = (SequenceAligner(C=0.1, mode="global", random_state=0).fit(X, rows) for rows in (y, lower))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.score(X, y) == one.score(X, lower) == 1.0
    assert log_odds_matrix(lower)["A", "A"] == log_odds_matrix(y)["A", "A"]
