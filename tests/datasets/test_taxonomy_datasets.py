"""Documents in taxonomies: the real files where STRUCTSVM_DATA has them, and simulated ones."""

import json
import os
import zipfile

import numpy as np
import pooch
import pytest

from structsvm import datasets
from structsvm.datasets import DatasetUnavailableError, _fetch, _sources, make_taxonomy, write_documents
from structsvm.structures.taxonomy import Taxonomy, read_taxonomy

needs_data = pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA names no data folder")


@needs_data
def test_clinc150():
    data = datasets.fetch_clinc150()
    assert [len(X) for X in (data.X_train, data.X_valid, data.X_test)] == [15000, 3000, 4500]
    assert data.X_train[0] == "what expression would i use to say i love you if i were an italian"
    assert data.y_train[0] == "travel/translate" and data.taxonomy.path(data.y_train[0])[0] == "travel"
    assert len(data.taxonomy.leaves) == 150 and data.taxonomy.height[0] == 2 and data.taxonomy.root == "ROOT"
    assert set(np.unique(data.y_train)) == set(data.taxonomy.leaves) == set(np.unique(data.y_test))
    assert repr(data) == "TaxonomyDocuments(n_train=15000, n_test=4500, n_classes=150)"


@needs_data
def test_amazon_reviews():
    data = datasets.fetch_amazon_reviews()
    assert [len(y) for y in (data.y_train, data.y_valid, data.y_test)] == [6244, 884, 1819]
    assert len(data.taxonomy.leaves) == 317 and data.taxonomy.height[0] == 3
    assert set(np.unique(data.y_train)) == set(data.taxonomy.leaves)


@needs_data
def test_imclef07a():
    data = datasets.fetch_imclef07a()
    assert data.X_train.shape == (10000, 80) and data.X_test.shape == (1006, 80) and data.X_train.dtype == np.float32
    assert len(data.taxonomy.leaves) == 63 and set(data.y_test) <= set(data.y_train) == set(data.taxonomy.leaves)
    assert data.X_valid is None and data.y_valid is None


@needs_data
def test_clinc150_conversion(tmp_path):
    """The queries, laid out again as the origin's archive has them, give our files."""
    data = datasets.fetch_clinc150()
    queries = {}
    for key, part in (("train", "train"), ("val", "valid"), ("test", "test")):
        texts, labels = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
        queries[key] = [[f" {text}", str(label).split("/")[1]] for text, label in zip(texts, labels, strict=True)]
    domains = {}
    for leaf in data.taxonomy.leaves:
        domain, intent = leaf.split("/")
        domains.setdefault(domain, []).append(intent)
    with zipfile.ZipFile(tmp_path / "archive", "w") as archive:
        archive.writestr("oos-eval-8/data/data_full.json", json.dumps(queries))
        archive.writestr("oos-eval-8/data/domains.json", json.dumps(domains))
    made = _sources._clinc150(tmp_path / "archive")
    for file, (_, content) in _fetch.fetch("clinc150").items():
        assert _fetch._checked(_sources.SOURCES["clinc150"], file, made[file], file) == content


def test_what_cannot_be_downloaded_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(pooch, "retrieve", lambda *args, **kwargs: pytest.fail("no download"))
    for fetch in (datasets.fetch_amazon_reviews, datasets.fetch_imclef07a):
        with pytest.raises(DatasetUnavailableError, match=r"its origin has it in another form(.|\n)*Origin: https"):
            fetch(tmp_path)


# --- simulated documents --------------------------------------------------------------------------


def test_simulated_documents():
    X, y, taxonomy = make_taxonomy(300, n_leaves=20, depth=3, n_words=100, mean_length=8.0, random_state=0)
    again = make_taxonomy(300, n_leaves=20, depth=3, n_words=100, mean_length=8.0, random_state=0)
    assert again[0] == X and (y == again[1]).all() and taxonomy == again[2]
    other = make_taxonomy(300, n_leaves=20, depth=3, n_words=100, mean_length=8.0, random_state=1)
    assert other[0] != X and other[2] == taxonomy
    assert len(X) == len(y) == 300 and set(y) == set(taxonomy.leaves) and len(taxonomy.leaves) == 20
    assert {len(taxonomy.path(leaf)) for leaf in taxonomy.leaves} == {3} == {int(taxonomy.height[0])}
    lengths = [len(text.split()) for text in X]
    assert min(lengths) >= 1 and 7.0 < np.mean(lengths) < 9.0
    assert {word for text in X for word in text.split()} <= {f"w{k}" for k in range(100)}


@pytest.mark.parametrize("depth", [1, 2, 5])
@pytest.mark.parametrize("n_leaves", [2, 3, 17, 100])
def test_trees_of_all_sizes(n_leaves, depth):
    X, y, taxonomy = make_taxonomy(5, n_leaves=n_leaves, depth=depth, random_state=0)
    assert len(taxonomy.leaves) == n_leaves and taxonomy.height[0] == depth and taxonomy.is_tree
    assert len(X) == len(y) == 5


def test_all_topical_words_belong_to_the_way():
    """Without background a word that is in most documents of a leaf is in no document of most others."""
    X, y, _ = make_taxonomy(400, n_leaves=16, depth=2, topical=1.0, random_state=0)
    words = {
        leaf: {word for text, label in zip(X, y, strict=True) if label == leaf for word in text.split()}
        for leaf in set(y)
    }
    assert max(map(len, words.values())) <= 24
    near = [len(words[a] & words[b]) for a in words for b in words if a < b and a.split("/")[0] == b.split("/")[0]]
    far = [len(words[a] & words[b]) for a in words for b in words if a < b and a.split("/")[0] != b.split("/")[0]]
    assert min(near) >= 10 > max(far)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_samples", 0), ("n_leaves", 1), ("depth", 0), ("n_words", 11), ("mean_length", 0.5), ("topical", 1.5)],
)
def test_parameters_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"^The '{name}' parameter of make_taxonomy must be .* Got {value} instead"):
        make_taxonomy(**{name: value})


def test_written_documents(tmp_path):
    X, y, taxonomy = make_taxonomy(10, n_leaves=4, depth=2, random_state=0)
    write_documents(tmp_path / "docs.txt", X, y, taxonomy, tmp_path / "edges.tsv")
    lines = (tmp_path / "docs.txt").read_text().splitlines()
    assert [line.split("\t") for line in lines] == [[str(label), text] for label, text in zip(y, X, strict=True)]
    assert read_taxonomy(tmp_path / "edges.tsv") == taxonomy == Taxonomy(taxonomy.edges)
    with pytest.raises(ValueError, match="X has 10 texts and y has 9 labels"):
        write_documents(tmp_path / "docs.txt", X, y[:9])
    with pytest.raises(ValueError, match="line 2 would contain a tab or a line break"):
        write_documents(tmp_path / "docs.txt", ["a", "b\nc"], ["x", "y"])
    with pytest.raises(ValueError, match="taxonomy_path must name the file"):
        write_documents(tmp_path / "docs.txt", X, y, taxonomy)
