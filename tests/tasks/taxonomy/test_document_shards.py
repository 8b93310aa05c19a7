"""Training on documents in files: scikit-learn's features, the model of the same shards in memory; what is refused."""

import copy
import gzip
import io
import os
import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

import structsvm
from structsvm import ConvergenceWarning, DocumentShards, FrankWolfe, LaRank, ModelFileError, Perceptron
from structsvm.callbacks import CallbackMonitor
from structsvm.features.svmlight import write_svmlight
from structsvm.model_file import read_model, write_model
from structsvm.oracles.taxonomy import as_documents
from structsvm.shards.tokens import StoredTokens
from structsvm.tasks import TaxonomyClassifier
from structsvm.tasks.common.units import rows_in
from structsvm.tasks.taxonomy.documents import DocumentFileError, document_pieces, read_documents
from structsvm.tasks.taxonomy.examples import Documents

LABELS = [f"{a} > {b}" for a in "AB" for b in "xyz"]
SETTINGS = {
    "margin": {"C": 0.3, "random_state": 0},
    "log": {"C": 1.0, "loss": "log", "max_iter": 3, "random_state": 0},
    "frank-wolfe": {"solver": FrankWolfe(C=0.3, max_iter=3, tol=None, random_state=0)},
    "perceptron": {"solver": Perceptron(max_iter=2, random_state=0)},
    "choice of C": {"random_state": 0, "class_weight": "balanced"},
}


@pytest.fixture(scope="module")
def data():
    """Texts, no two of them equal, with their labels."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 6, 150)
    words = [f"w{k}" for k in range(50)]
    texts = [" ".join([*rng.choice(words, 8), f"topic{k}", f"T{k % 2}", f"no{i}"]) for i, k in enumerate(ids)]
    return texts, [LABELS[k] for k in ids]


@pytest.fixture(scope="module")
def source(data):
    return b"".join(f"{label}\t{text}\n".encode() for text, label in zip(*data, strict=True))


@pytest.fixture(scope="module")
def folder(source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    made = DocumentShards.make(io.BytesIO(source), folder / "many", vectorizer=TfidfVectorizer(), max_memory=3000)
    assert 3 <= made.n_shards < len(made) == 150
    return folder


def classifier(name="margin", **given):
    return TaxonomyClassifier(" > ", **SETTINGS[name] | given)


def assert_same_documents(a, b):
    assert len(a) == len(b) and a.labels == b.labels
    assert a.tokens.fingerprint(a.label_ids) == b.tokens.fingerprint(b.label_ids)


def assert_same(a, b):
    assert np.array_equal(a.model_.weights, b.model_.weights)
    assert np.array_equal(a.result_.dual, b.result_.dual, equal_nan=True)
    assert (a.temperature_, a.model_.fingerprint) == (b.temperature_, b.model_.fingerprint)


def rows_of(shards):
    tokens = shards.tokens
    values = np.ones(tokens.n_entries) if tokens.values is None else np.array(tokens.values)
    arrays = values, np.array(tokens.indices), np.array(tokens.indptr)
    return csr_array(arrays, (len(tokens), tokens.n_features))


class TestFeatures:
    @pytest.mark.parametrize(
        "vectorizer",
        [
            TfidfVectorizer(sublinear_tf=True, min_df=2, max_df=0.5, ngram_range=(1, 2)),
            TfidfVectorizer(max_features=20, dtype=np.float32),
            TfidfVectorizer(use_idf=False, norm="l1", binary=True, lowercase=False, max_features=30),
            TfidfVectorizer(vocabulary=["topic1", "w3", "nowhere", "t0"]),
            TfidfVectorizer(smooth_idf=False),
            CountVectorizer(stop_words=["w1"], token_pattern=r"\S+"),
            CountVectorizer(vocabulary={"w2": 1, "topic0": 0}, binary=True),
        ],
        ids=repr,
    )
    def test_are_scikit_learns(self, data, source, tmp_path, vectorizer):
        made = DocumentShards.make(io.BytesIO(source), tmp_path / "new", vectorizer=vectorizer, max_memory=9000)
        X = csr_array(vectorizer.fit_transform(data[0])).astype(np.float32)
        assert (rows_of(made)[:, :-1] != X).nnz == 0
        assert (rows_of(made)[:, [-1]].toarray() == 1.0).all()
        assert made.n_features == X.shape[1] == made.tokens.n_features - 1
        stored = made.vectorizer
        assert stored.vocabulary_ == vectorizer.vocabulary_
        assert stored.get_params()["vocabulary"] in (None, sorted(stored.vocabulary_, key=stored.vocabulary_.get))
        assert np.array_equal(getattr(stored, "idf_", 0), getattr(vectorizer, "idf_", 0))
        assert [made.labels[k] for k in made.label_ids] == data[1]

    def test_of_batches_are_those_of_files(self, tmp_path):
        rng = np.random.default_rng(0)
        X = csr_array(np.where(rng.random((40, 9)) < 0.4, rng.normal(size=(40, 9)), 0.0).astype(np.float32))
        X[39, 8] = 1.0
        y = np.array(LABELS)[rng.integers(0, 6, 40)]
        names = np.char.replace(y, " ", "")
        write_svmlight(tmp_path / "file", X, names)
        parts = [(X[:7].toarray(), names[:7]), (X[7:8], names[7:8].tolist()), (X[8:].tolil(), list(names[8:]))]
        one = DocumentShards.make(iter(parts), tmp_path / "batches", max_memory=300)
        two = DocumentShards.make(tmp_path / "file", tmp_path / "new", max_memory=300)
        for made in (one, two):
            assert (rows_of(made)[:, :-1] != X).nnz == 0
            assert made.labels == sorted(set(names.tolist()))
        assert one.tokens.fingerprint(one.label_ids) == two.tokens.fingerprint(two.label_ids)
        without = DocumentShards.make(iter(parts), tmp_path / "without", fit_intercept=False)
        assert (rows_of(without) != X).nnz == 0
        numbers = DocumentShards.make([(X, np.arange(40) % 3)], tmp_path / "numbers")
        assert numbers.labels == [0, 1, 2]

    def test_of_compressed_files_and_tables(self, folder, data, source, tmp_path):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        (tmp_path / "texts.gz").write_bytes(gzip.compress(source))
        table = pyarrow.table({"text": data[0], "label": data[1]})
        parquet.write_table(table, tmp_path / "table.parquet", row_group_size=40)
        wanted = DocumentShards.open(folder / "many")
        for k, (given, columns) in enumerate(
            [
                (tmp_path / "texts.gz", None),
                (tmp_path / "table.parquet", None),
                (table.append_column("n", [list(range(150))]), ["text", "label"]),
            ]
        ):
            made = DocumentShards.make(given, tmp_path / str(k), columns=columns, vectorizer=TfidfVectorizer())
            assert made.tokens.fingerprint(made.label_ids) == wanted.tokens.fingerprint(wanted.label_ids)


def test_pieces_of_a_file_are_the_whole(source, monkeypatch):
    monkeypatch.setattr("structsvm.tasks.taxonomy.documents.BLOCK", 500)
    monkeypatch.setattr("structsvm.features.sources.BLOCK", 70)
    for text in (source, b"\xef\xbb\xbf" + source.replace(b"\n", b"\r\n\n", 60)[:-1]):
        pieces = list(document_pieces(io.BytesIO(gzip.compress(text))))
        assert len(pieces) > 5
        X, y = read_documents(io.BytesIO(text))
        assert [text for X, *_ in pieces for text in X] == X
        assert [label for _, y, _ in pieces for label in y] == y
    bad = source + b"no tab\n"
    with pytest.raises(DocumentFileError, match=r"line 151: expected label<TAB>text"):
        list(document_pieces(io.BytesIO(gzip.compress(bad))))
    bad = source[:5000] + b"\xff" + source[5000:]
    line = 1 + source[:5000].count(b"\n")
    with pytest.raises(DocumentFileError, match=rf"line {line}: bytes that are not UTF-8"):
        list(document_pieces(io.BytesIO(gzip.compress(bad))))


class TestTraining:
    @pytest.mark.parametrize("name", SETTINGS)
    def test_is_the_same_in_memory(self, folder, name):
        mapped, memory = (DocumentShards.open(folder / "many", mmap=mmap) for mmap in (True, False))
        assert_same(classifier(name).fit(mapped), classifier(name).fit(memory))

    @pytest.mark.parametrize("name", sorted(set(SETTINGS) - {"perceptron"}))
    def test_of_one_shard_is_that_of_plain_data(self, data, tmp_path, name):
        """Whose documents training puts into an order of its own, and merges if they are equal."""
        X, y = csr_array(CountVectorizer().fit_transform(data[0])).astype(np.float32), np.array(data[1])
        ids = np.searchsorted(np.unique(y), y)
        number = np.arange(1.0, len(y) + 1.0)
        documents = Documents(rows_in(None, X, True, as_documents), ids, len(np.unique(y)), weight=number)
        order = documents.merged().weight.astype(int) - 1
        X, y = X[order], y[order]
        one = DocumentShards.make([(X, y)], tmp_path / "new")
        assert one.n_shards == 1
        plain = classifier(name).fit(X, y)
        fitted = classifier(name).fit(one)
        assert np.array_equal(fitted.model_.weights, plain.model_.weights)
        assert fitted.result_.dual == plain.result_.dual
        assert (fitted.predict(X) == plain.predict(X)).all()

    def test_reads_shard_by_shard(self, folder, monkeypatch):
        released = []
        release = StoredTokens.release
        monkeypatch.setattr(StoredTokens, "release", lambda self, a, b: (released.append((a, b)), release(self, a, b)))
        shards = DocumentShards.open(folder / "many")
        for a, b in pairwise(shards.tokens.bounds.tolist()):
            part = shards.tokens[a:b]
            assert 12 * len(part) + 8 * part.n_entries <= 3000
        classifier(max_iter=1).fit(shards)
        counts = [released.count(ends) for ends in pairwise(shards.tokens.bounds.tolist())]
        # Two looks at all documents before, the visits (but for the last), settling, the average, two rounds.
        assert min(counts[:-1]) >= 6

    @pytest.mark.parametrize("name", ["offsets", "indptr", "indices", "values", "label_ids"])
    def test_a_file_that_is_cut_off_between_passes(self, name, source, tmp_path, monkeypatch):
        shards = DocumentShards.make(io.BytesIO(source), tmp_path / "new", vectorizer=TfidfVectorizer())
        file, begin_pass = shards.folder / name, CallbackMonitor.begin_pass

        def cut_off(self, run):
            os.truncate(file, 4)
            return begin_pass(self, run)

        monkeypatch.setattr(CallbackMonitor, "begin_pass", cut_off)
        with pytest.raises(ValueError, match=rf"new.{name}: has 4 bytes, and had \d+ when it was mapped"):
            classifier().fit(shards)

    def test_travels_as_its_folder(self, folder):
        shards = DocumentShards.open(folder / "many", trusted=True)
        for again in (copy.deepcopy(shards), pickle.loads(pickle.dumps(shards))):
            assert_same_documents(again, shards)

    def test_goes_on_and_is_stored(self, folder, data, tmp_path):
        shards = DocumentShards.open(folder / "many")
        parts = classifier(solver=LaRank(C=0.3, max_iter=1, random_state=0), C="auto", random_state=None)
        parts.set_params(warm_start=True).fit(shards)
        parts.save(tmp_path / "model")
        again = structsvm.load(tmp_path / "model")
        assert repr(again.vectorizer) == repr(TfidfVectorizer())
        whole = classifier(solver=LaRank(C=0.3, max_iter=2, random_state=0), C="auto", random_state=None).fit(shards)
        assert_same(again.fit(shards), whole)
        assert again.score(*data) > 0.9
        assert again.predict(data[0][:3]).tolist() == whole.predict(data[0][:3]).tolist()

    def test_weights_of_documents_and_threads(self, folder):
        shards = DocumentShards.open(folder / "many")
        weight = np.where(shards.label_ids < 3, 1.0, 0.0)
        assert {name[0] for name in classifier().fit(shards, sample_weight=weight).predict(["w1", "topic5"])} == {"A"}
        solver = LaRank(C=0.3, tol=0.01, max_iter=1000, random_state=0)
        alone = TaxonomyClassifier(" > ", solver=solver).fit(shards)
        two = TaxonomyClassifier(" > ", solver=LaRank(**solver.get_params() | {"n_jobs": 2, "deterministic": False}))
        assert two.fit(shards).result_.dual == pytest.approx(alone.result_.dual, rel=0.02)


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            ({"vectorizer": CountVectorizer()}, ValueError, r"made with vectorizer=TfidfVectorizer\(\), and the"),
            ({"fit_intercept": False}, ValueError, "made with fit_intercept=True"),
            ({"kernel": "rbf"}, ValueError, "shards need kernel=None, got 'rbf'"),
            ({"max_weights": 1000}, ValueError, "more than max_weights=1000: raise it, or make them with fewer terms"),
            ({"taxonomy": [("A", "A > x")]}, ValueError, "is no node of the taxonomy"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_parameters_that_the_shards_settle(self, folder, given, error, message):
        with pytest.raises(error, match=message):
            classifier().set_params(**given).fit(DocumentShards.open(folder / "many"))

    def test_changed_files(self, source, tmp_path):
        made = DocumentShards.make(io.BytesIO(source), tmp_path / "new", vectorizer=TfidfVectorizer(), max_memory=3000)
        label_ids = np.fromfile(made.folder / "label_ids", dtype="<i4")
        label_ids[70] ^= 1
        label_ids.tofile(made.folder / "label_ids")
        with pytest.raises(ModelFileError, match=r"shard \d+ has changed since it was made"):
            classifier().fit(DocumentShards.open(made.folder, trusted=True))

    def test_labels_beside_them_and_batches(self, folder, data):
        shards = DocumentShards.open(folder / "many")
        with pytest.raises(ValueError, match="without y"):
            classifier().fit(shards, data[1])
        with pytest.raises(TypeError, match="partial_fit takes a batch"):
            classifier().partial_fit(shards, None)
        with pytest.raises(ValueError, match=r"sample_weight"):
            classifier().fit(shards, sample_weight=[1.0])

    def test_models_of_other_features(self, folder, data, tmp_path):
        shards = DocumentShards.open(folder / "many")
        model = classifier(vectorizer=TfidfVectorizer(), warm_start=True, max_iter=1, tol=None)
        model.fit(data[0][:50], data[1][:50])
        with pytest.raises(ValueError, match="another vectorizer than the shards"):
            model.fit(shards)
        X = csr_array(np.eye(6, dtype=np.float32))
        three = DocumentShards.make([(X, LABELS)], tmp_path / "three")
        with pytest.raises(ValueError, match="made with vectorizer=None, and the classifier has TfidfVectorizer"):
            model.fit(three)
        model = classifier(warm_start=True).fit(X[:, :5], LABELS)
        with pytest.raises(ValueError, match="other features or labels than the shards"):
            model.fit(three)

    def test_inner_nodes(self, tmp_path):
        shards = DocumentShards.make([(np.eye(3), ["A", "A > x", "A > y"])], tmp_path / "new")
        edges = [("A", "A > x"), ("A", "A > y"), ("root", "A")]
        with pytest.raises(ValueError, match="labels that are sorted and fully known"):
            classifier().set_params(leaf_only=True, taxonomy=edges).fit(shards)

    @pytest.mark.parametrize(
        ("batches", "given", "error", "message"),
        [
            ([(["a b"], ["A"])], {}, TypeError, "texts need a vectorizer"),
            ([(np.eye(2), ["A", "B"])], {"vectorizer": CountVectorizer()}, ValueError, "with a vectorizer X must be a"),
            ([([["a", "b"]], ["A"])], {"vectorizer": CountVectorizer()}, ValueError, r"takes texts, and X\[0\] is"),
            ([(np.eye(2), ["A"])], {}, ValueError, "a batch of 2 documents has 1 labels"),
            ([(np.eye(2), ["A", {"B"}])], {}, ValueError, "document 1 of its batch has no label, but {'B'}"),
            ([(np.eye(2), "AB"), (np.eye(3), "ABC")], {}, ValueError, "3 columns, and those before 2"),
            ([(np.array([[np.nan]]), ["A"])], {}, ValueError, "not finite|NaN|nan"),
            ([], {}, ValueError, "there are no documents"),
            ([(["a", "b"], "AB")], {"vectorizer": CountVectorizer(token_pattern="x")}, ValueError, "no terms remain"),
            ([(["a", "b"], "AB")], {"vectorizer": CountVectorizer(max_df=1, min_df=2)}, ValueError, "max_df"),
            ([], {"vectorizer": HashingVectorizer()}, TypeError, "a model file cannot hold a HashingVectorizer"),
            ([], {"vectorizer": CountVectorizer(input="filename")}, TypeError, "opens files"),
            ([], {"columns": ["a", "b"]}, ValueError, "'columns' parameter is for tables"),
            ([], {"columns": "ab"}, ValueError, "'columns' parameter must be two names, got 'ab'"),
            ([], {"max_memory": 0}, ValueError, "'max_memory' parameter must be an int of at least 1"),
        ],
    )
    def test_sources(self, tmp_path, batches, given, error, message):
        with pytest.raises(error, match=message):
            DocumentShards.make(iter(batches), tmp_path / "new", **given)
        assert not list(tmp_path.iterdir())

    def test_files_and_tables(self, tmp_path):
        (tmp_path / "empty").write_text("\n \n")
        (tmp_path / "wrong").write_text("1 1:2\n1 3000000000:3\n")
        for name, message in (("empty", "empty: holds no documents"), ("wrong", r"wrong, line 2: an index")):
            with pytest.raises(DocumentFileError, match=message):
                DocumentShards.make(tmp_path / name, tmp_path / "new")
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table({"a": ["x"], "b": ["y"], "c": ["z"]})
        with pytest.raises(
            ValueError, match=r"has two columns, texts and labels \(columns=\); it has \['a', 'b', 'c'\]"
        ):
            DocumentShards.make(table, tmp_path / "new", vectorizer=CountVectorizer())

    def test_several_files(self, folder, source, tmp_path):
        lines = source.splitlines(keepends=True)
        paths = [tmp_path / "a", tmp_path / "b.gz"]
        paths[0].write_bytes(b"".join(lines[:40]))
        paths[1].write_bytes(gzip.compress(b"".join(lines[40:])))
        made = DocumentShards.make(paths, tmp_path / "new", vectorizer=TfidfVectorizer(), max_memory=3000)
        assert_same_documents(made, DocumentShards.open(folder / "many"))
        (tmp_path / "narrow").write_text("1 1:2\n")
        (tmp_path / "wide").write_text("2 3:1\n")
        made = DocumentShards.make([tmp_path / "narrow", tmp_path / "wide"], tmp_path / "rows", fit_intercept=False)
        assert len(made) == 2 and made.n_features == 3
        with pytest.raises(ValueError, match="there are no documents"):
            DocumentShards.make([], tmp_path / "none")

    def test_several_tables(self, data, tmp_path):
        pa = pytest.importorskip("pyarrow")
        feather = pytest.importorskip("pyarrow.feather")
        texts, labels = data
        first, second = {"text": texts[:70], "label": labels[:70]}, {"label": labels[70:], "text": texts[70:]}
        for name, columns in (("a", first), ("b", second), ("all", {"text": texts, "label": labels})):
            feather.write_feather(pa.table(columns), tmp_path / name, "uncompressed")
        several, one = (
            DocumentShards.make(source, tmp_path / name, vectorizer=TfidfVectorizer())
            for name, source in (("two", [tmp_path / "a", tmp_path / "b"]), ("one", tmp_path / "all"))
        )
        assert several.labels == LABELS
        assert_same_documents(several, one)

    def test_damaged_files(self, folder, source, tmp_path, monkeypatch):
        monkeypatch.setattr(DocumentShards, "check", lambda self: None)  # checksums that are forged, too
        made = DocumentShards.make(io.BytesIO(source), tmp_path / "new", vectorizer=TfidfVectorizer(), max_memory=3000)
        for name, dtype, wrong, message in (
            ("indices", "<i4", -1, "features that ascend"),
            ("indices", "<i4", 2**30, "features that ascend"),
            ("indptr", "<i8", 2**62, "features that ascend"),
            ("indptr", "<i8", -(2**62), "features that ascend"),
            ("offsets", "<i8", 7, "features that ascend"),
            ("label_ids", "<i4", 6, "label ids must be one per document, from 0 to 5"),
            ("label_ids", "<i4", -1, "label ids must be one per document, from 0 to 5"),
        ):
            path = made.folder / name
            before = path.read_bytes()
            array = np.frombuffer(before, dtype).copy()
            array[len(array) // 2] = wrong
            array.tofile(path)
            with pytest.raises(ValueError, match=message):
                classifier(class_weight="balanced").fit(DocumentShards.open(made.folder))
            path.write_bytes(before[:-4])
            with pytest.raises(ModelFileError, match=rf"{name}: has \d+ bytes, expected"):
                DocumentShards.open(made.folder)
            path.write_bytes(before)
        assert classifier().fit(DocumentShards.open(made.folder)).result_.dual > 0.0

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"n_features": 7}, "a vectorizer of 208 terms, and 7 features"),
            ({"n_features": 2**31}, "n_features"),
            ({"labels": []}, "label"),
            ({"labels": [[1]] * 6}, "label"),
            ({"has_intercept": 1}, "has_intercept"),
            ({"max_memory": 0}, "max_memory"),
            ({"sizes": {}}, "offsets"),
        ],
        ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
    )
    def test_damaged_indexes(self, folder, tmp_path, change, message):
        file = read_model(folder / "many" / "index", kind="document shards")
        for path in (folder / "many").iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        write_model(tmp_path / "index", "document shards", file.meta | change, file.arrays)
        with pytest.raises(ModelFileError, match=message):
            DocumentShards.open(tmp_path)

    def test_a_regular_expression_of_a_file(self, tmp_path):
        """A regular expression may take exponential time: one's own is used, another's refused."""
        texts, vectorizer = [(["aa b", "aaa"], ["A", "B"])], CountVectorizer(token_pattern="(?:a+)+")
        made = DocumentShards.make(texts, tmp_path / "new", vectorizer=vectorizer)
        assert set(made.vectorizer.vocabulary_) == {"aa", "aaa"}
        with pytest.raises(ModelFileError, match=r"runs the regular expression token_pattern='\(\?:a\+\)\+'"):
            DocumentShards.open(tmp_path / "new")
        assert DocumentShards.open(tmp_path / "new", trusted=True).n_features == 2


def test_other_solvers_say_when_they_have_not_converged(folder):
    solver = structsvm.CuttingPlane(C=0.3, max_iter=1, tol=1e-6)
    with pytest.warns(ConvergenceWarning):
        TaxonomyClassifier(" > ", solver=solver).fit(DocumentShards.open(folder / "many"))
