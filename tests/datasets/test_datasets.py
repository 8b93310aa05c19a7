"""Data sets: the real files where STRUCTSVM_DATA has them, the mechanics with made-up ones."""

import dataclasses
import functools
import gzip
import hashlib
import os
import re
import shutil
import sys
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pooch
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from structsvm import datasets
from structsvm.datasets import DatasetUnavailableError, _fetch, _sources, make_sequences, write_columns
from structsvm.features.columns import read_columns
from structsvm.structures.trees import Tree

FETCHERS = {
    "conll2000": datasets.fetch_conll2000,
    "conll2002": datasets.fetch_conll2002,
    "treebank_tags": datasets.fetch_treebank_tags,
    "ocr_letters": datasets.fetch_ocr_letters,
    "rank_lightgbm": datasets.fetch_rank_lightgbm,
}


@pytest.fixture
def real_data():
    if "STRUCTSVM_DATA" not in os.environ:
        pytest.skip("STRUCTSVM_DATA does not name a data folder")
    return Path(os.environ["STRUCTSVM_DATA"])


@pytest.fixture
def offline(monkeypatch):
    def retrieve(url, **kwargs):
        raise ConnectionError(f"no route to {url}")

    monkeypatch.setattr(pooch, "retrieve", retrieve)


@pytest.fixture
def tiny(monkeypatch):
    """A data set "tiny" of one file whose origin is a zip archive, downloaded by a fake pooch."""
    text = b"a T B-X\nb T I-X\n\nc T O\n\n"
    source = _sources.Source(
        folder="tiny_folder",
        sha256={"train.gz": hashlib.sha256(text).hexdigest()},
        url="https://example.org/tiny.zip",
        convert=_sources._zip_members({"train.gz": "tiny/train"}),
        licence="free of cares",
    )
    monkeypatch.setitem(_sources.SOURCES, "tiny", source)

    def retrieve_text(text):
        def retrieve(url, known_hash, fname, path):
            assert url == source.url
            with zipfile.ZipFile(Path(path) / fname, "w") as archive:
                archive.writestr("tiny/train", text)
            return str(Path(path) / fname)

        monkeypatch.setattr(pooch, "retrieve", retrieve)

    retrieve_text(text)
    return text, retrieve_text


# --- real data ------------------------------------------------------------------------------


def count(y):
    return len(y), sum(map(len, y)), len({label for labels in y for label in labels})


@pytest.mark.parametrize(
    ("name", "parts", "n_columns"),
    [
        ("conll2000", {"train": (8936, 211727, 22), "test": (2012, 47377, 19)}, 2),
        ("conll2002", {"train": (8323, 264715, 9), "valid": (1915, 52923, 9), "test": (1517, 51533, 9)}, 2),
        ("treebank_tags", {"train": (3396, 81793, 45), "test": (518, 12291, 40)}, 1),
    ],
)
def test_text_counts(real_data, offline, name, parts, n_columns):
    data = FETCHERS[name]()
    for part, wanted in parts.items():
        X, y, path = (getattr(data, field.format(part)) for field in ("X_{}", "y_{}", "{}_path"))
        assert count(y) == wanted
        assert [len(x) for x in X] == [len(labels) for labels in y]
        assert {len(token) for x in X for token in x} == {n_columns}
        assert path.is_relative_to(real_data)
    if "valid" not in parts:
        assert data.X_valid is data.y_valid is data.valid_path is None
    assert repr(data) == f"TextSequences(n_train={parts['train'][0]}, n_test={parts['test'][0]})"


@pytest.mark.parametrize(("part", "counts"), [("labeled", 146), ("us50", 687), ("osm", 4120)])
def test_addresses(real_data, offline, part, counts):
    data = datasets.fetch_addresses(part=part)
    assert (len(data.X_train), len(data.X_test)) == (1513, counts)
    assert len({field for labels in data.y_train for field in labels}) == 29
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert [len(x) for x in X] == [len(labels) for labels in y]
        assert all(word and not any(map(str.isspace, word)) for x in X for word in x)


def test_words_of_a_record_keep_what_is_attached_to_them(real_data, offline):
    data = datasets.fetch_addresses(part="osm")
    assert data.X_test[0] == ["2701", "Thayer", "Street,", "Evanston,", "60201"]
    assert data.y_test[0][-2:] == ["PlaceName", "ZipCode"]
    with pytest.raises(ValueError, match="part must be one of labeled, us50, osm, got 'gold'"):
        datasets.fetch_addresses(part="gold")


def test_citations(real_data, offline):
    data = datasets.fetch_citations()
    assert (len(data.X_train), len(data.X_test)) == (1514, 1669)
    assert data.X_train[0][:4] == ["Heidegger", "M.,", "1927,", "Être"]
    assert data.y_train[0][:4] == ["author", "author", "date", "title"]
    assert all(len(x) == len(labels) for X, y in ((data.X_train, data.y_train),) for x, labels in zip(X, y))


def test_conll2000_first_tokens(real_data):
    data = datasets.fetch_conll2000(data_home=real_data)
    assert data.X_train[0][:2] == [("Confidence", "NN"), ("in", "IN")]
    assert data.y_train[0][:3] == ["B-NP", "B-PP", "B-NP"]


def test_treebank_sample(real_data, offline):
    data = datasets.fetch_treebank_sample()
    assert [(len(part), sum(len(tree.leaves()) for tree in part)) for part in (data.train, data.test)] == [
        (3396, 81793),
        (518, 12291),
    ]
    assert {tree.label for tree in data.train} == {"TOP"} and data.test_path.is_relative_to(real_data)
    assert repr(data) == "Treebank(n_train=3396, n_test=518)"


def test_sentences_of_treebanks_in_english():
    """The same trees; no code is left, and a code has one word."""
    options = {"max_length": 12, "random_state": 0}
    words = {}
    for make in (datasets.make_treebank, functools.partial(datasets.make_dependency_trees, crossing=0.3)):
        for coded, english in zip(make(300, **options), make(300, english=True, **options), strict=True):
            if isinstance(coded, Tree):
                assert [tag for _, tag in coded.tokens()] == [tag for _, tag in english.tokens()]
                assert re.sub(r" [^()]+\)", ")", str(coded)) == re.sub(r" [^()]+\)", ")", str(english))
                pairs = zip(coded.leaves(), english.leaves(), strict=True)
            else:
                assert coded.arcs == english.arcs
                assert [word.xpos for word in coded.words] == [word.xpos for word in english.words]
                pairs = zip(str(coded).split(), str(english).split(), strict=True)
            for code, word in pairs:
                assert words.setdefault(code, word) == word and re.fullmatch(r"[A-Z]?[a-z]*|[.,]", word)
    assert words["dt0"] == "the" and len(set(words.values())) > 80


@pytest.mark.parametrize("make", [datasets.make_treebank, datasets.make_dependency_trees])
def test_english_is_a_flag(make):
    for wrong in ("no", 1, None):
        with pytest.raises(ValueError, match=f"'english' parameter of {make.__name__} must be a bool. Got {wrong!r}"):
            make(1, english=wrong)
    assert str(make(1, english=np.True_, random_state=0)[0]) == str(make(1, english=True, random_state=0)[0])


def test_make_treebank():
    trees = datasets.make_treebank(200, max_length=12, random_state=0)
    assert trees == datasets.make_treebank(200, max_length=12, random_state=0)
    assert trees != datasets.make_treebank(200, max_length=12, random_state=1)
    assert len(trees) == 200 and max(len(tree.leaves()) for tree in trees) <= 12
    assert all(tag is not None for tree in trees for _, tag in tree.tokens())
    for parameters in ({"n_trees": 0}, {"max_length": 4}):
        with pytest.raises(ValueError, match=f"The '{next(iter(parameters))}' parameter of make_treebank"):
            datasets.make_treebank(**parameters)


def test_ocr_letters(real_data):
    data = datasets.fetch_ocr_letters()
    assert count(data.y) == (6877, 52152, 26)
    assert [len(x) for x in data.X] == [len(letters) for letters in data.y]
    assert data.X[0].shape == (9, 128) and data.X[0].dtype == np.float32
    assert "".join(data.y[0]) == "ommanding"
    assert set(np.unique(data.X[0])) == {0, 1}
    assert np.bincount(data.folds).tolist() == [626, 704, 684, 698, 693, 651, 739, 717, 690, 675]
    assert repr(data) == "LetterSequences(n_words=6877)"


def test_treebank_conversion(real_data, tmp_path):
    """The published trees, laid out again as the origin's archive has them, give our files."""
    folder = real_data / "wsj_sample"
    members = defaultdict(list)
    trees = {
        part: gzip.decompress((folder / f"trees.{part}.mrg.gz").read_bytes()).decode().splitlines()
        for part in ("train", "test")
    }
    for line in gzip.decompress((folder / "index.tsv.gz").read_bytes()).decode().splitlines():
        part, number, file = line.split("\t")[:3]
        members[file].append(trees[part][int(number) - 1])
    with zipfile.ZipFile(tmp_path / "treebank.zip", "w") as archive:
        for file, lines in members.items():
            text = "\n\n" + "\n".join(lines).replace(") (", ")\n    (").replace("))", ") )")
            archive.writestr(f"treebank/combined/{file}.mrg", text)

    for name in ("treebank_tags", "treebank_sample"):
        source = _sources.SOURCES[name]
        made = source.convert(tmp_path / "treebank.zip")
        for file in source.sha256:
            _fetch._checked(source, file, made[file], file)


def test_ocr_conversion(real_data, tmp_path):
    """letter.data written from our file gives our file."""
    data = datasets.fetch_ocr_letters()
    with gzip.open(tmp_path / "letter.data.gz", "wt", compresslevel=1) as file:
        number = 0
        for word, (x, letters, fold) in enumerate(zip(data.X, data.y, data.folds, strict=True), 1):
            for t, letter in enumerate(letters):
                number += 1
                following = number + 1 if t + 1 < len(letters) else -1
                fields = [number, letter, following, word, t + 1, fold, *x[t].astype(int).tolist()]
                file.write("\t".join(map(str, fields)) + "\t\n")
    source = _sources.SOURCES["ocr_letters"]
    made = source.convert(tmp_path / "letter.data.gz")
    _fetch._checked(source, "ocr.npz", made["ocr.npz"], "ocr.npz")


def test_copied_data_home(real_data, offline, tmp_path):
    shutil.copytree(real_data / "chunk_conll2000", tmp_path / "chunk_conll2000")
    data = datasets.fetch_conll2000(data_home=str(tmp_path))
    assert data.train_path == tmp_path / "chunk_conll2000" / "train.txt.gz"


# --- mechanics ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FETCHERS)
def test_offline_message(name, offline, tmp_path, monkeypatch):
    monkeypatch.setenv("STRUCTSVM_DATA", str(tmp_path))
    source = _sources.SOURCES[name]
    with pytest.raises(DatasetUnavailableError) as error:
        FETCHERS[name]()
    message = str(error.value)
    assert isinstance(error.value, OSError)
    assert error.value.__suppress_context__
    for part in (*source.sha256, str(tmp_path / source.folder), "data_home=", "STRUCTSVM_DATA"):
        assert part in message
    for part in (source.url, source.licence, "ConnectionError"):
        assert part in message
    assert not list(tmp_path.iterdir())


def test_data_home_comes_before_the_environment(offline, tmp_path, monkeypatch):
    monkeypatch.setenv("STRUCTSVM_DATA", str(tmp_path / "env"))
    with pytest.raises(DatasetUnavailableError, match="argument"):
        datasets.fetch_conll2000(data_home=tmp_path / "argument")


def test_default_data_home(tiny, tmp_path, monkeypatch):
    monkeypatch.delenv("STRUCTSVM_DATA", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    path, _ = _fetch.fetch("tiny")["train.gz"]
    assert path == tmp_path / "cache" / "structsvm" / "tiny_folder" / "train.gz"
    (tmp_path / "structsvm_data").mkdir()  # as an earlier version did
    path, _ = _fetch.fetch("tiny")["train.gz"]
    assert path == tmp_path / "structsvm_data" / "tiny_folder" / "train.gz"


def test_the_folder_for_caches_is_the_systems(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert _fetch.default_home() == Path(pooch.os_cache("structsvm"))
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert _fetch.default_home() == tmp_path / "structsvm_data"


def test_download_then_use_in_place(tiny, tmp_path, request):
    text, _ = tiny
    path, content = _fetch.fetch("tiny", tmp_path)["train.gz"]
    assert content == text == gzip.decompress(path.read_bytes())
    assert [p.name for p in path.parent.iterdir()] == ["train.gz"]
    request.getfixturevalue("offline")
    assert _fetch.fetch("tiny", tmp_path)["train.gz"] == (path, text)


def test_a_set_that_no_one_can_convert(tiny, tmp_path, monkeypatch):
    source = dataclasses.replace(_sources.SOURCES["tiny"], convert=None)
    monkeypatch.setitem(_sources.SOURCES, "tiny", source)
    with pytest.raises(DatasetUnavailableError, match=r"train.gz not found.*another form(.|\n)*Put the file there"):
        _fetch.fetch("tiny", tmp_path)


def test_downloaded_file_with_other_content(tiny, tmp_path):
    text, retrieve_text = tiny
    retrieve_text(b"something else")
    with pytest.raises(DatasetUnavailableError) as error:
        _fetch.fetch("tiny", tmp_path)
    for part in (
        "train.gz made from https://example.org/tiny.zip",
        hashlib.sha256(b"something else").hexdigest(),
        hashlib.sha256(text).hexdigest(),
    ):
        assert part in str(error.value)
    assert not list(tmp_path.iterdir())


def test_archive_that_is_none(tiny, tmp_path, monkeypatch):
    def retrieve(url, known_hash, fname, path):
        Path(path, fname).write_bytes(b"<html>not found</html>")
        return str(Path(path, fname))

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    with pytest.raises(DatasetUnavailableError, match="downloading failed \\(BadZipFile\\)"):
        _fetch.fetch("tiny", tmp_path)


def test_without_pooch(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(DatasetUnavailableError, match="pip install pooch"):
        _fetch.fetch("tiny", tmp_path)


OTHER = gzip.compress(b"other", mtime=0)


@pytest.mark.parametrize("raw", [b"", b"no gzip", gzip.compress(b"a T O\n" * 99, mtime=0)[:30], OTHER])
def test_damaged_file(tiny, tmp_path, raw):
    path = tmp_path / "tiny_folder" / "train.gz"
    path.parent.mkdir()
    path.write_bytes(raw)
    with pytest.raises(DatasetUnavailableError, match="Remove it to download it again") as error:
        _fetch.fetch("tiny", tmp_path)
    assert str(path) in str(error.value)
    assert path.read_bytes() == raw
    if raw == OTHER:
        assert hashlib.sha256(b"other").hexdigest() in str(error.value)
        assert _sources.SOURCES["tiny"].sha256["train.gz"] in str(error.value)


def test_damaged_npz(tmp_path, offline):
    path = tmp_path / "ocr_letters" / "ocr.npz"
    path.parent.mkdir()
    for damage in (b"PK\x03\x04", b"none"):
        path.write_bytes(damage)
        with pytest.raises(DatasetUnavailableError, match="damaged"):
            datasets.fetch_ocr_letters(tmp_path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(DatasetUnavailableError, match="damaged"):
        datasets.fetch_ocr_letters(tmp_path)
    np.savez(path, labels=np.zeros(3))
    with pytest.raises(DatasetUnavailableError, match="not the file wanted"):
        datasets.fetch_ocr_letters(tmp_path)


# --- simulation -----------------------------------------------------------------------------


def test_make_sequences_is_deterministic():
    first = make_sequences(50, random_state=3)
    assert first == make_sequences(50, random_state=3)
    assert first == make_sequences(50, random_state=np.random.default_rng(3))
    assert first != make_sequences(50, random_state=4)


@pytest.mark.parametrize("n_labels", [2, 3, 8, 22, 40])
def test_make_sequences_shape(n_labels):
    X, y = make_sequences(300, n_labels=n_labels, n_words=500, mean_length=12, random_state=0)
    assert len(X) == len(y) == 300
    assert [len(x) for x in X] == [len(labels) for labels in y]
    assert min(map(len, y)) >= 1
    assert np.mean([len(labels) for labels in y]) == pytest.approx(12, rel=0.1)
    tag_of = dict(token for x in X for token in x)
    assert len(tag_of) <= 500
    assert all(tag_of[word] == tag for x in X for word, tag in x)
    assert 2 <= len({label for labels in y for label in labels}) <= n_labels
    for labels in y:
        for before, label in zip(["O", *labels], labels, strict=False):
            assert not label.startswith("I-") or before[2:] == label[2:]


def test_make_sequences_single_tokens():
    X, y = make_sequences(5, mean_length=1, random_state=0)
    assert [len(x) for x in X] == [len(labels) for labels in y] == [1] * 5


def majority_accuracy(key, train, test):
    """Accuracy of the most frequent training label given key(x, labels, t)."""
    seen = defaultdict(Counter)
    for x, labels in zip(*train, strict=True):
        for t, label in enumerate(labels):
            seen[key(x, labels, t)][label] += 1
    best = {k: labels.most_common(1)[0][0] for k, labels in seen.items()}
    hits = [
        best.get(key(x, labels, t)) == label for x, labels in zip(*test, strict=True) for t, label in enumerate(labels)
    ]
    return np.mean(hits)


def test_make_sequences_needs_context():
    train = make_sequences(4000, n_words=1000, random_state=0)
    test = make_sequences(500, n_words=1000, random_state=1)
    by_tag = majority_accuracy(lambda x, labels, t: x[t][1], train, test)
    by_word = majority_accuracy(lambda x, labels, t: x[t], train, test)
    by_both = majority_accuracy(lambda x, labels, t: (x[t], labels[t - 1] if t else None), train, test)
    assert 0.7 < by_tag < by_word - 0.02
    assert by_word < by_both - 0.02 < 0.97
    clean = make_sequences(500, n_words=1000, noise=0, random_state=1)
    assert majority_accuracy(lambda x, labels, t: x[t], train, clean) > by_word


@pytest.mark.parametrize(
    ("name", "value"), [("n_sequences", 0), ("n_labels", 1), ("n_words", 3), ("mean_length", 0.5), ("noise", 1.5)]
)
def test_make_sequences_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of make_sequences must be"):
        make_sequences(**{name: value})


def test_make_word_alignments():
    params = {"n_words": 50, "max_length": 9, "dropped": 0.2, "spurious": 0.1, "random_state": 3}
    (sentences, Y), again = (datasets.make_word_alignments(600, **params) for _ in range(2))
    assert again[0] == sentences and all((a == b).all() for a, b in zip(again[1], Y, strict=True))
    assert {len(right) for _, right in sentences} == set(range(1, 10))
    pairs = Counter()
    for (left, right), y in zip(sentences, Y, strict=True):
        assert len(left) == len(y) and y.dtype == np.int64
        matched = y[y >= 0]
        assert len(set(matched.tolist())) == len(matched) and matched.max(initial=-1) < len(right)
        pairs.update((left[i], right[j]) for i, j in enumerate(y) if j >= 0)
    words = sum(len(right) for _, right in sentences)
    assert pairs.total() / words == pytest.approx(0.8, abs=0.02)
    assert sum((y < 0).sum() for y in Y) == pytest.approx(0.1 * (0.8 * words + 600), rel=0.15)
    same = sum(
        n for (a, b), n in pairs.items() if a.removeprefix("name").lstrip("a") == b.removeprefix("name").lstrip("b")
    )
    assert same / pairs.total() == pytest.approx(0.7, abs=0.04)
    assert all(a.startswith("name") == (int(a.removeprefix("name").lstrip("a")) % 7 == 6) for a, _ in pairs)
    assert max(len({a for a, b in pairs if b == word}) for word in {b for _, b in pairs}) == 2
    # In the order of the second sentence without jitter; several words of one, where they may.
    _, ordered = datasets.make_word_alignments(50, max_fertility=3, reorder=0.0, random_state=0)
    assert all((np.diff(y[y >= 0]) >= 0).all() for y in ordered)
    assert max(np.bincount(y[y >= 0], minlength=1).max() for y in ordered) == 3
    for name, value in (("n_words", 1), ("dropped", 1.5), ("reorder", -1.0), ("max_fertility", 0)):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of make_word_alignments must be"):
            datasets.make_word_alignments(**{name: value})


@pytest.mark.parametrize("file", ["data.txt", "data.txt.gz"])
def test_write_columns(tmp_path, file):
    X, y = [[("ä", "T1"), ("b", "T2")], [("c", "T1")]], [["B-X", "O"], ["O"]]
    write_columns(tmp_path / file, X, y)
    opened = gzip.open if file.endswith(".gz") else open
    with opened(tmp_path / file, "rt", encoding="utf-8") as lines:
        text = lines.read()
    assert text == "ä T1 B-X\nb T2 O\n\nc T1 O\n\n"
    with pytest.raises(ValueError, match="sequence 1: X has 1 tokens and y has 2 labels"):
        write_columns(tmp_path / "bad", X, [["O", "O"], ["O", "O"]])
    with pytest.raises(ValueError, match="X has 2 sequences and y has 1"):
        write_columns(tmp_path / "bad", X, [["O", "O"]])
    assert not (tmp_path / "bad").exists()


def test_words_are_written_as_simulators_return_them(tmp_path):
    X, y = datasets.make_addresses(20, random_state=0)
    write_columns(tmp_path / "words", X, y)
    write_columns(tmp_path / "tuples", [[(word,) for word in words] for words in X], y)
    assert (tmp_path / "words").read_bytes() == (tmp_path / "tuples").read_bytes()
    assert [*read_columns(tmp_path / "words").drop_last()] == X


@given(
    st.integers(1, 3).flatmap(
        lambda n: st.lists(st.lists(st.tuples(*[st.text(max_size=3)] * (n + 1)), min_size=1, max_size=3), max_size=3)
    )
)
@example([[("\ufeff", "\ufeffB")], [("\ufeffx", "O")]])
@example([[("\ufeff\ufeff", "O")]])
@example([[("-DOCSTART-", "O")]])
@example([[("x", "-DOCSTART-")]])
@example([[("a b", "O")]])
@example([[("a", "\tO")]])
@example([[("a\r", "O")]])
@example([[("\n", "O")]])
@example([[("", "O")]])
@example([[("\ud800", "O")]])
@example([[("\x85", "\u2028"), ("\x0b", "\xa0"), ("#", '"')]])
def test_write_columns_is_read_back_or_refused(tmp_path_factory, sequences):
    path = tmp_path_factory.mktemp("columns") / "c"
    X, y = [[token[:-1] for token in s] for s in sequences], [[token[-1] for token in s] for s in sequences]
    fields = [field for s in sequences for token in s for field in token]
    bad = [field for field in fields if not field or set(field) & set(" \t\r\n") or not is_utf8(field)]
    bad += [token[0] for s in sequences for token in s if token[0].startswith(("\ufeff", "-DOCSTART-"))]
    if bad or not sequences:
        with pytest.raises(ValueError, match=r"^(sequence \d, token \d, (column \d|label): |X has no sequences)"):
            write_columns(path, X, y)
        assert list(path.parent.iterdir()) == []
    else:
        write_columns(path, X, y)
        columns = read_columns(path)
        assert [list(zip(*rows, strict=True)) for rows in zip(*map(columns.column, range(columns.n_columns)))] == (
            sequences
        )


def is_utf8(text):
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[("a", "N"), ("b c", "N")]], [["O", "O"]], ValueError, "sequence 0, token 1, column 0: 'b c' cannot be writ"),
        ([[("a",)], [("a",)]], [["O"], ["\t"]], ValueError, r"sequence 1, token 0, label: '\\t' cannot be written"),
        ([[("a",)], []], [["O"], []], ValueError, "sequence 1 is empty"),
        ([[("a",), ("a", "N")]], [["O", "O"]], ValueError, "token 1: expected 2 columns with the label, got 3"),
        ([["dog", ("a", "N")]], [["O", "O"]], ValueError, "token 1: expected 2 columns with the label, got 3"),
        ([["big dog"]], [["O"]], ValueError, "sequence 0, token 0, column 0: 'big dog' cannot be written"),
        ([[("a", 1)]], [["O"]], TypeError, "sequence 0, token 0, column 1: expected a str, got 1"),
        ([["a"], "dog"], [["O"], ["O"] * 3], TypeError, "sequence 1 of X must be a list .*, got 'dog'"),
        ([["a"], ["b", "c"]], [["O"], "BO"], TypeError, "sequence 1 of y must be a list .*, got 'BO'"),
        ([["a"], 7], [["O"], ["O"]], TypeError, "sequence 1 of X must be a list .*, got 7"),
        ([["a", 1]], [["O", "O"]], TypeError, "sequence 0, token 1: expected a str or a tuple of str, got 1"),
        ([], [], ValueError, "no sequences"),
    ],
)
def test_what_write_columns_refuses(tmp_path, X, y, error, message):
    (tmp_path / "c").write_text("the file before")
    with pytest.raises(error, match=message):
        write_columns(tmp_path / "c", X, y)
    assert (tmp_path / "c").read_text() == "the file before"
    assert os.listdir(tmp_path) == ["c"]
