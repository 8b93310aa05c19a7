"""Training on shards in files: the same model, bit for bit, as in memory; what is refused."""

import copy
import io
import os
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from python_oracles import Multiclass

from structsvm import CuttingPlane, FrankWolfe, LaRank, ModelFileError, Perceptron, SequenceShards
from structsvm.callbacks import CallbackMonitor
from structsvm.datasets import make_sequences
from structsvm.dual._rounds import violations
from structsvm.features.columns import ColumnFileError, ColumnPieces, Columns, read_columns
from structsvm.features.template_features import TemplateVocabulary, count
from structsvm.features.templates import TemplateLayout
from structsvm.model_file import read_model, write_model
from structsvm.shards.pieces import column_pieces
from structsvm.shards.storage import Vector, dumps_references
from structsvm.shards.tokens import StoredTokens, shard_bounds
from structsvm.solvers import ConditionalLikelihood
from structsvm.tasks import SequenceLabeler, TokenFeatures

TEMPLATES = "U0:%x[0,0]\nU1:%x[-1,0]\nU2:%x[0,0]/%x[1,0]\nU3:%suffix2[0,0]\nB\n"
SHARING = TEMPLATES + "U:%x[-1,0]\nU:%x[1,0]\n"  # two share their features


@pytest.fixture(scope="module")
def data():
    X, y = make_sequences(120, random_state=0)
    rows = [
        [(*token, label) for token, label in zip(tokens, labels, strict=True)]
        for tokens, labels in zip(X, y, strict=True)
    ]
    return Columns.from_sequences(rows)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    (folder / "train.conll").write_bytes(data.to_bytes())
    for name, options in FEATURES.items():
        SequenceShards.make(folder / "train.conll", folder / f"{name}-1", **options)
        SequenceShards.make(folder / "train.conll", folder / f"{name}-many", max_memory=20_000, **options)
    return folder


FEATURES = {
    "vocabulary": {"templates": TEMPLATES, "min_count": 2},
    "hashed": {"templates": SHARING, "hash_bits": 7},  # features of one token collide: values
}
SETTINGS = {
    "exact": {"C": 0.1, "max_iter": 3, "loss": "hamming"},
    "greedy": {"C": 0.1, "max_iter": 2, "inference": "greedy"},
    "log": {"C": 1.0, "max_iter": 2, "loss": "log"},
    "frank-wolfe": {"solver": FrankWolfe(C=0.1, max_iter=2, tol=None, random_state=0), "loss": "hamming"},
    "fixed": {"solver": LaRank(C=0.1, schedule="fixed", max_iter=2, random_state=0), "loss": "hamming"},
    "choice of C": {"loss": "hamming"},
}


def of_labeler(name):
    """The parameters of a labeler that make the features of shards."""
    features = FEATURES[name].copy()
    return {"templates": features.pop("templates"), "features": TokenFeatures(**features)}


def labeler(name, features):
    given = SETTINGS[name]
    return SequenceLabeler(**given, **of_labeler(features), **({} if "solver" in given else {"random_state": 0}))


def assert_same(a, b):
    assert np.array_equal(a.model_.weights, b.model_.weights)
    assert a.model_.temperature == b.model_.temperature
    assert a.result_.dual == b.result_.dual
    assert a.model_.fingerprint == b.model_.fingerprint


class TestOneShard:
    @pytest.mark.parametrize("name", SETTINGS)
    def test_is_what_plain_data_are(self, folder, data, name):
        one = SequenceShards.open(folder / "vocabulary-1")
        assert one.n_shards == 1
        plain = labeler(name, "vocabulary").fit(data.drop_last(), data.select([-1]))
        fitted = labeler(name, "vocabulary").fit(one)
        assert_same(fitted, plain)
        assert fitted.predict(data.drop_last()[:5]) == plain.predict(data.drop_last()[:5])
        assert fitted.feature_names_ == plain.feature_names_

    def test_of_hashed_features_with_values(self, folder, data):
        one = SequenceShards.open(folder / "hashed-1")
        assert one.tokens.values is not None
        plain = labeler("exact", "hashed").fit(data.drop_last(), data.select([-1]))
        assert_same(labeler("exact", "hashed").fit(one), plain)


class TestManyShards:
    @pytest.mark.parametrize("features", FEATURES)
    @pytest.mark.parametrize("name", ["exact", "greedy", "log", "fixed"])
    def test_are_the_same_in_memory(self, folder, name, features):
        mapped = SequenceShards.open(folder / f"{features}-many")
        memory = SequenceShards.open(folder / f"{features}-many", mmap=False)
        assert 3 <= mapped.n_shards < len(mapped)
        assert_same(labeler(name, features).fit(mapped), labeler(name, features).fit(memory))

    def test_hold_as_much_as_memory_may(self, folder):
        shards = SequenceShards.open(folder / "vocabulary-many")
        tokens = shards.tokens
        for a, b in pairwise(tokens.bounds.tolist()):
            part = tokens[a:b]
            assert 12 * part.n_tokens + 4 * part.n_entries <= 20_000
        assert tokens.bounds[-1] == len(shards) == 120

    def test_go_as_they_are_left(self, folder, monkeypatch):
        released = []
        release = StoredTokens.release
        monkeypatch.setattr(StoredTokens, "release", lambda self, a, b: (released.append((a, b)), release(self, a, b)))
        shards = SequenceShards.open(folder / "vocabulary-many")
        labeler("exact", "vocabulary").set_params(max_iter=1, probability=False).fit(shards)
        counts = [released.count(ends) for ends in pairwise(shards.tokens.bounds.tolist())]
        # Two checks of the tokens, the visits (but for the last), settling, restart and use of the average, two rounds.
        assert min(counts[:-1]) >= 7

    def test_warm_start_resumes_bit_for_bit(self, folder):
        shards = SequenceShards.open(folder / "vocabulary-many")
        whole = labeler("exact", "vocabulary").set_params(max_iter=2, probability=False).fit(shards)
        parts = labeler("exact", "vocabulary").set_params(max_iter=1, probability=False, warm_start=True)
        assert_same(parts.fit(shards).fit(shards), whole)

    def test_threads_reach_the_same_optimum(self, folder):
        shards = SequenceShards.open(folder / "vocabulary-many")

        def fitted(**how):
            solver = LaRank(C=0.1, tol=0.01, random_state=0, **how)
            model = SequenceLabeler(solver=solver, loss="hamming", probability=False, **of_labeler("vocabulary"))
            return model.fit(shards)

        duals = [fitted(**how).result_.dual for how in ({}, {"n_jobs": 2, "deterministic": False})]
        assert duals[1] == pytest.approx(duals[0], rel=0.02)
        assert fitted(n_jobs=2).result_.dual == duals[0]

    def test_the_loss_is_the_margin(self, folder):
        model = SequenceLabeler(random_state=0, **of_labeler("vocabulary"))
        model.fit(SequenceShards.open(folder / "vocabulary-many"))
        assert model.loss_ == "hamming" and list(model.results_) == ["hamming"]
        assert model.C_ > 0.0 and model.temperature_ > 0.0

    def test_gap_sampling_stays_within_shards(self, folder):
        solver = FrankWolfe(C=0.1, tol=0.05, max_iter=200, sampling="gap", random_state=0)
        model = SequenceLabeler(solver=solver, loss="hamming", probability=False, **of_labeler("vocabulary"))
        assert model.fit(SequenceShards.open(folder / "vocabulary-many")).result_.status == "converged"


@pytest.mark.parametrize("schedule", ["fixed", "adaptive", "decode-once"])
def test_old_examples_are_of_the_section_that_is_visited(schedule):
    asked, left = [], []

    class Watched(Multiclass):
        def argmax(self, x, w, y_true=None, rescaling=None):
            asked.append(int(x[-1]))
            return super().argmax(x, w, y_true, rescaling)

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(60, 3)), np.arange(60)])
    Y = rng.integers(0, 3, size=60)
    oracle = Watched(3, 4)
    solver = LaRank(C=1.0, schedule=schedule, max_iter=2, random_state=0, average=False)
    problem = oracle.bind(list(X), Y.tolist(), **solver.formulation())
    problem.in_sections(np.array([0, 20, 45, 60]), lambda a, b: left.append((a, b, len(asked))))
    solver.solve(problem)
    assert [ends[:2] for ends in left[:2]] == [(0, 20), (20, 45)]
    first, second = asked[: left[0][2]], asked[left[0][2] : left[1][2]]
    assert len(set(first)) == 20 and max(first) < 20
    assert len(set(second)) == 25 and min(second) >= 20 and max(second) < 45
    assert first != sorted(first)


def test_a_round_of_a_part_of_each_section_leaves_them():
    left = []
    problem = Multiclass(3, 4).bind([np.zeros(4)] * 60, [0] * 60)
    problem.in_sections(np.array([0, 20, 45, 60]), lambda a, b: left.append((a, b)))
    for start, stop in [(0, 5), (20, 25), (45, 60), (5, 20)]:
        violations(problem, np.zeros(12), start, stop)
    assert left == [(0, 20), (20, 45), (45, 60), (0, 20)]


class TestSources:
    def test_tables_are_what_column_files_are(self, folder, data, tmp_path):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        names = [f"c{j}" for j in range(data.n_columns)]
        lists = pyarrow.table({name: data.column(j) for j, name in enumerate(names)})
        rows = {name: [v for values in data.column(j) for v in values] for j, name in enumerate(names)}
        rows["sentence"] = [s for s, n in enumerate(np.diff(data.offsets)) for _ in range(n)]
        parquet.write_table(lists, tmp_path / "lists.parquet")
        parquet.write_table(pyarrow.table(rows), tmp_path / "rows.parquet", row_group_size=7)
        with pyarrow.ipc.new_file(tmp_path / "lists.arrow", lists.schema) as writer:
            writer.write_table(lists, max_chunksize=50)
        with pyarrow.ipc.new_stream(tmp_path / "messages.arrow", lists.schema) as writer:
            writer.write_table(lists, max_chunksize=50)
        batches = pyarrow.table(rows).to_reader(max_chunksize=5)
        wanted = SequenceShards.open(folder / "vocabulary-1")
        for k, (source, how) in enumerate(
            [
                (tmp_path / "lists.parquet", {}),
                (tmp_path / "rows.parquet", {"sequence": "sentence"}),
                (batches, {"sequence": "sentence"}),
                (tmp_path / "lists.arrow", {"columns": names}),
                (tmp_path / "messages.arrow", {}),
                (lists, {}),
            ]
        ):
            made = SequenceShards.make(source, tmp_path / str(k), **how, **FEATURES["vocabulary"])
            assert made.labels == wanted.labels
            assert made.tokens.fingerprint(made.label_ids) == wanted.tokens.fingerprint(wanted.label_ids)

    @pytest.mark.parametrize("features", FEATURES)
    def test_several_files_are_one_after_the_other(self, folder, data, features, tmp_path):
        files = []
        for k, (a, b) in enumerate(pairwise([0, 1, 50, 120])):
            (tmp_path / f"{k}.conll").write_bytes(data[a:b].to_bytes())
            files.append(tmp_path / f"{k}.conll")
        made = SequenceShards.make(files, tmp_path / "new", max_memory=20_000, **FEATURES[features])
        for file in (folder / f"{features}-many").iterdir():
            assert (made.folder / file.name).read_bytes() == file.read_bytes()
        assert {path.name for path in tmp_path.iterdir()} == {"new", *(file.name for file in files)}

    def test_values_in_one_of_several_files(self, tmp_path):
        """A token of the second file has two features, of templates that share theirs, that are hashed to one."""
        texts = [f"{'ab'[k]} {k}\n".encode() for k in range(2)]
        names = "".join(f"U:%x[{j},0]\n" for j in range(-1, 2))
        for k in range(2):
            (tmp_path / f"{k}").write_bytes(texts[k])
        for hash_bits in range(1, 30):
            options = {"templates": names, "hash_bits": hash_bits}
            found = [SequenceShards.make(tmp_path / f"{k}", tmp_path / f"{k}-{hash_bits}", **options) for k in range(2)]
            if [one.tokens.values is None for one in found] == [True, False]:
                break
        (tmp_path / "both").write_bytes(b"\n".join(texts))
        wanted = SequenceShards.make(tmp_path / "both", tmp_path / "one", **options)
        made = SequenceShards.make([tmp_path / "0", tmp_path / "1"], tmp_path / "two", **options)
        assert (made.tokens.values == 1.0).any() and (made.tokens.values == 2.0).any()
        np.testing.assert_array_equal(made.tokens.values, wanted.tokens.values)
        assert made.tokens.fingerprint(made.label_ids) == wanted.tokens.fingerprint(wanted.label_ids)

    def test_what_is_no_list_of_files(self, folder, data, tmp_path):
        (tmp_path / "wide").write_text("a b c A\n")
        for sources, error, message in (
            ([], ValueError, "there are no files"),
            ([folder / "train.conll", data], TypeError, "several sources must be paths, got Columns"),
            ([folder / "train.conll", tmp_path / "none"], FileNotFoundError, "none"),
            ([folder / "train.conll", tmp_path / "wide"], ColumnFileError, r"wide: expected 3 columns, found 4"),
        ):
            with pytest.raises(error, match=message):
                SequenceShards.make(sources, tmp_path / "new", templates="attributes")
        assert [path.name for path in tmp_path.iterdir()] == ["wide"]

    def test_groups_of_rows_and_dictionaries_that_are_full(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        words = [[f"w{k}", f"v{k % 9}"] for k in range(2500)]
        table = pa.table({"w": words, "l": [["A", "B"]] * 2500})
        for name, how in (("groups", {"row_group_size": 700}), ("full", {"dictionary_pagesize_limit": 4000})):
            parquet.write_table(table, tmp_path / name, **how)
            pieces = list(column_pieces(tmp_path / name, 1000))
            assert [word for piece in pieces for word in piece.column(0)] == words

    def test_several_tables_have_the_columns_of_the_first(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        cells = {"w": [["a", "b"]], "l": [["A", "B"]]}
        tables = {"none": pa.table(cells).slice(0, 0), "first": pa.table(cells), "other": pa.table(cells)}
        tables["other"] = tables["other"].select(["l", "w"])
        for name, table in tables.items():
            parquet.write_table(table, tmp_path / name)
        made = SequenceShards.make([tmp_path / name for name in tables], tmp_path / "new", templates="attributes")
        assert made.labels == ["A", "B"] and len(made.tokens) == 2
        with pytest.raises(ValueError, match="there are no sequences"):
            SequenceShards.make([tmp_path / "none"], tmp_path / "empty", templates="attributes")
        parquet.write_table(tables["first"].rename_columns(["v", "l"]), tmp_path / "others")
        with pytest.raises(ValueError, match="others: the frame has no column 'w'; it has 'v', 'l'"):
            SequenceShards.make([tmp_path / "first", tmp_path / "others"], tmp_path / "empty", templates="attributes")

    def test_missing_keys_are_those_of_the_row_before(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = pa.table({"s": [0.0, 0.0, np.nan, np.nan, 2.0, None], "w": list("uvwxyz"), "l": list("ABABAB")})
        for size in (1, 2, 6):
            parquet.write_table(table, tmp_path / "t", row_group_size=size)
            pieces = list(column_pieces(tmp_path / "t", 100, sequence="s"))
            assert [n for piece in pieces for n in np.diff(piece.offsets).tolist()] == [4, 2]

    def test_errors_name_the_table_and_where_the_batch_begins(self, tmp_path):
        parquet = pytest.importorskip("pyarrow.parquet")
        pa = pytest.importorskip("pyarrow")
        cells = [["a", "b"]] * 30
        table = pa.table({"w": cells, "l": [*cells[:25], ["A"], *cells[26:]]})
        parquet.write_table(table, tmp_path / "t", row_group_size=10)
        with pytest.raises(ValueError, match="t: of the rows from 20 on, row 5: 2 values in column 'w', 1 in 'l'"):
            list(column_pieces(tmp_path / "t", 100))
        table = pa.table({"s": [k // 2 for k in range(30)], "w": ["a"] * 25 + [None] * 5, "l": ["A"] * 30})
        parquet.write_table(table, tmp_path / "t", row_group_size=10)
        with pytest.raises(ValueError, match=r"t: of the rows from 18 on, sequence 3, token 1: column 'w' holds None"):
            list(column_pieces(tmp_path / "t", 100, sequence="s"))

    def test_sequence_that_goes_on_after_others(self, tmp_path):
        pyarrow = pytest.importorskip("pyarrow")
        table = pyarrow.table({"s": ["a", "a", "b", "a"], "w": list("wxyz"), "l": list("ABAB")})
        batches = table.to_reader(max_chunksize=1)
        with pytest.raises(ValueError, match=r"sequence 'a' of column 's' goes on after others"):
            SequenceShards.make(batches, tmp_path / "new", sequence="s")
        assert not (tmp_path / "new").exists()

    def test_malformed_files(self, tmp_path):
        (tmp_path / "one").write_text("word\n\nword\n")
        (tmp_path / "ragged").write_text("a A\nb B\n\nc\n")
        (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing more")
        for name, error, message in (
            ("one", ColumnFileError, "one column"),
            ("ragged", ColumnFileError, r"ragged:4: expected 2 columns, found 1"),
            ("bad.parquet", ValueError, "bad.parquet"),
        ):
            with pytest.raises(error, match=message):
                SequenceShards.make(tmp_path / name, tmp_path / "new")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.parquet", "one", "ragged"]

    @pytest.mark.parametrize("form", ["arrow", "messages", "parquet"])
    def test_forged_tables(self, form, tmp_path):
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table = pa.table({"w": pa.array(["first", "second"]), "l": pa.array(["A", "B"])})
        sink = pa.BufferOutputStream()
        if form == "parquet":
            parquet.write_table(table, sink, compression="none", use_dictionary=False)
        else:
            with (pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream)(sink, table.schema) as writer:
                writer.write_table(table)
        data = sink.getvalue().to_pybytes()
        forged = data.replace(b"first", b"\xffirst"[:5])  # no text
        ends = np.array([0, 5, 11], dtype="<i4").tobytes()
        longer = data.replace(ends, np.array([0, 5, 2**30], dtype="<i4").tobytes())  # a string past its buffer
        for k, (bad, message) in enumerate([(forged, "UTF8|UTF-8|utf"), (longer, "offset|buffer"), (data[:-9], "")]):
            if bad == longer and form == "parquet":
                continue  # a table has lengths, not offsets
            assert bad != data
            (tmp_path / f"{k}.table").write_bytes(bad)
            with pytest.raises(ValueError, match=rf"{k}\.table: .*({message})"):
                SequenceShards.make(tmp_path / f"{k}.table", tmp_path / "new", sequence="w")

    @pytest.mark.parametrize("change", [1, 16])
    def test_forged_footers(self, change, tmp_path):
        """Forge a Parquet file, a byte at a time: read or refused. pyarrow ends the process on reading some."""
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        table, path = pa.table({"w": [["a", "b"], ["c"]], "l": [["A", "B"], ["A"]]}), tmp_path / "table"
        parquet.write_table(table, path, store_schema=False)
        data = path.read_bytes()
        outcomes = set()
        for place in range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data) - 8):
            path.write_bytes(data[:place] + bytes([data[place] ^ change]) + data[place + 1 :])
            try:
                outcomes.add(sum(map(len, column_pieces(path, 1000))))
            except ValueError as error:
                outcomes.add(type(error))
        assert {2, ValueError} <= outcomes

    @pytest.mark.parametrize("bomb", ["page", "long strings", "one long row", "run", "arrow"])
    def test_tables_that_unfold(self, bomb, tmp_path):
        """To 25 times their size, or more than 32 MiB: files of 80 KB that take gigabytes as objects."""
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        zeros, one_row = pa.array(np.zeros(5000, dtype=np.int8)), pa.array([0, 10**7], type=pa.int32())
        named = pa.DictionaryArray.from_arrays(zeros, pa.array(["a" * 30_000]))
        letters = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**7, dtype=np.int8)), pa.array(["a"]))
        cells = {
            "page": pa.array(["a" * 2**24] * 2),
            "one long row": pa.ListArray.from_arrays(one_row, letters),
            "run": pa.RunEndEncodedArray.from_arrays(pa.array([10**7], type=pa.int32()), pa.array(["a"])),
        }.get(bomb, named)
        table, path = pa.table({"w": cells, "l": cells}), tmp_path / "bomb.table"
        if bomb in ("run", "arrow"):
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        else:
            parquet.write_table(table, path, compression="zstd", use_dictionary=bomb != "page", store_schema=False)
        assert path.stat().st_size < 80_000
        with pytest.raises(ValueError, match=r"bomb\.table: a group of rows unfolds to more than 33554432; unpack"):
            SequenceShards.make(path, tmp_path / "new", sequence="w")
        assert not (tmp_path / "new").exists()

    def test_columns_of_types_that_name_no_sequence(self, tmp_path):
        pa = pytest.importorskip("pyarrow")
        words = {"w": ["a", "b"], "l": ["A", "B"]}
        never = pa.array([2**62, 0], type=pa.timestamp("s"))
        twice = pa.Table.from_arrays([pa.array(["x", "y"])] * 4, names=["s", "s", "w", "l"])
        for table, message in (
            (pa.table({"s": [["x"], ["y"]], **words}), "row 0: column 's' holds .*, which cannot name a sequence"),
            (pa.table({"s": [{"x": 1}, {"x": 2}], **words}), "row 0: column 's' holds .*, which cannot name"),
            (pa.table({"s": never, **words}), "column 's' holds values that Python does not have"),
            (twice, "unique|duplicate|twice|times"),
            (pa.table(words), "the frame has no column 's'; it has 'w', 'l'"),
        ):
            with pytest.raises(ValueError, match=message):
                SequenceShards.make(table, tmp_path / "new", sequence="s")


class TestRefusals:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"templates": "crf++"}, "made with templates="),
            ({"features__min_count": 3}, "made with min_count=2, and the labeler has min_count=3"),
            ({"segments": True}, "segments=False"),
            ({"broken": "repair", "constraints": "bio"}, "broken='refuse'"),
        ],
        ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
    )
    def test_parameters_that_the_shards_settle(self, folder, given, message):
        shards = SequenceShards.open(folder / "vocabulary-1")
        with pytest.raises(ValueError, match=message):
            labeler("exact", "vocabulary").set_params(**given).fit(shards)

    def test_labels_beside_them_and_batches(self, folder):
        shards = SequenceShards.open(folder / "vocabulary-1")
        with pytest.raises(ValueError, match="without y"):
            labeler("exact", "vocabulary").fit(shards, [["A"]])
        with pytest.raises(TypeError, match="partial_fit takes a batch"):
            labeler("exact", "vocabulary").partial_fit(shards, None)

    def test_a_model_of_other_features(self, folder, data):
        model = labeler("exact", "vocabulary").set_params(warm_start=True)
        model.fit(data.drop_last()[:50], data.select([-1])[:50])
        with pytest.raises(ValueError, match="other features or labels than the shards"):
            model.fit(SequenceShards.open(folder / "vocabulary-1"))

    @pytest.mark.parametrize("source", [None, 3, io.StringIO("the DT\n")])
    def test_what_is_no_source(self, source, tmp_path):
        with pytest.raises(TypeError, match=r"source must be a path or a binary file, got (NoneType|int|StringIO)"):
            SequenceShards.make(source, tmp_path / "new")
        assert not list(tmp_path.iterdir())

    def test_folders_and_memory(self, folder, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(FileExistsError, match="a new folder, or an empty one"):
            SequenceShards.make(folder / "train.conll", tmp_path)
        with pytest.raises(ValueError, match="'max_memory' parameter must be an int of at least 1"):
            SequenceShards.make(folder / "train.conll", tmp_path / "new", max_memory=0)
        with pytest.raises(ValueError, match=r"lines that begin with B and name an attribute"):
            SequenceShards.make(folder / "train.conll", tmp_path / "new", templates="U0:%x[0,0]\nB0:%x[0,0]\n")

    def test_damaged_files_of_forged_checksums(self, data, tmp_path, monkeypatch):
        monkeypatch.setattr(SequenceShards, "check", lambda self: None)
        (tmp_path / "train").write_bytes(data[:20].to_bytes())
        shards = SequenceShards.make(tmp_path / "train", tmp_path / "new")
        words = np.fromfile(tmp_path / "new" / "indices", dtype="<i4")
        words[3] = -1
        words.tofile(tmp_path / "new" / "indices")
        with pytest.raises(ValueError, match="feature indices outside"):
            SequenceLabeler(C=0.1).fit(SequenceShards.open(shards.folder))
        words[:-1].tofile(tmp_path / "new" / "indices")
        with pytest.raises(ModelFileError, match=r"indices: has \d+ bytes, expected"):
            SequenceShards.open(shards.folder)


def test_more_than_32_bits_count(data, tmp_path):
    (tmp_path / "train").write_bytes(data[:20].to_bytes())
    shards = SequenceShards.make(tmp_path / "train", tmp_path / "new", max_memory=10**30)
    assert shards.n_shards == 1
    file = read_model(shards.folder / "index", kind="sequence shards")
    sizes = file.meta["sizes"] | {"indices": 2**33}
    write_model(shards.folder / "index", "sequence shards", file.meta | {"sizes": sizes}, file.arrays)
    with pytest.raises(ModelFileError, match=rf"indices: has \d+ bytes, expected {2**35}"):
        SequenceShards.open(shards.folder)


def test_runs_of_sequences_travel_as_references(folder):
    tokens = SequenceShards.open(folder / "vocabulary-many").tokens
    part = tokens[3:110]
    text = dumps_references(part)
    assert len(text) < 2000 < len(dumps_references(tokens[3:110:2]))
    found = pickle.loads(text)
    for name in ("offsets", "indptr", "indices"):
        np.testing.assert_array_equal(getattr(found, name), getattr(part, name))
    assert found.n_features == part.n_features and len(found[1:5]) == len(part[1:5]) == 4


@pytest.mark.parametrize("wrong", [2**62, -(2**62)])
def test_offsets_that_lead_nowhere(wrong, data, tmp_path, monkeypatch):
    monkeypatch.setattr(SequenceShards, "check", lambda self: None)
    (tmp_path / "train").write_bytes(data[:20].to_bytes())
    shards = SequenceShards.make(tmp_path / "train", tmp_path / "new", max_memory=1000)
    ends = np.fromfile(tmp_path / "new" / "indptr", dtype="<i8")
    ends[len(ends) // 4 : len(ends) // 2] = wrong
    ends.tofile(tmp_path / "new" / "indptr")
    assert shards.n_shards > 4
    with pytest.raises(ValueError, match="sequences"):
        SequenceLabeler(C=0.1).fit(SequenceShards.open(shards.folder))


@pytest.mark.parametrize("name", ["offsets", "indptr", "indices", "values", "label_ids"])
def test_shards_that_have_changed(name, data, tmp_path):
    (tmp_path / "train").write_bytes(data[:20].to_bytes())
    given = {"max_memory": 1000, "templates": SHARING, "hash_bits": 3}
    shards = SequenceShards.make(tmp_path / "train", tmp_path / "new", **given)
    entries = np.fromfile(shards.folder / name, dtype=np.uint8)
    at = 8 * int(shards.tokens.bounds[1]) if name == "offsets" else len(entries) // 2
    entries[at] ^= 1
    entries.tofile(shards.folder / name)
    shards = SequenceShards.open(shards.folder)
    assert 1 < np.count_nonzero(shards.tokens.checksums_now() == shards.tokens.checksums) < shards.n_shards
    with pytest.raises(ModelFileError, match=r"new: shard \d+ has changed since it was made; make the shards anew"):
        shards.check()
    with pytest.raises(ModelFileError, match=r"new: shard \d+ has changed since it was made; make the shards anew"):
        SequenceLabeler(C=0.1, templates=SHARING, features=TokenFeatures(hash_bits=3)).fit(shards)
    entries[at] ^= 1
    entries.tofile(shards.folder / name)
    shards.check()


@pytest.mark.parametrize("call", [1, 20, 60])
def test_a_file_that_is_cut_off_in_training(call, data, tmp_path, monkeypatch):
    (tmp_path / "train").write_bytes(data[:40].to_bytes())
    shards = SequenceShards.make(tmp_path / "train", tmp_path / "new", templates=TEMPLATES, max_memory=5000)
    file, size = shards.folder / "indices", (shards.folder / "indices").stat().st_size
    calls, release = [], StoredTokens.release

    def cut_off(self, start, stop):
        calls.append(start)
        if len(calls) == call:
            os.truncate(file, 0)
        release(self, start, stop)

    monkeypatch.setattr(StoredTokens, "release", cut_off)
    with pytest.raises(ValueError, match=rf"new.indices: has 0 bytes, and had {size} when it was mapped"):
        SequenceLabeler(C=0.1, templates=TEMPLATES).fit(shards)
    assert len(calls) == call


@pytest.mark.parametrize("solver", [LaRank, FrankWolfe, CuttingPlane, ConditionalLikelihood, Perceptron])
@pytest.mark.parametrize("name", ["offsets", "indptr", "indices", "label_ids"])
@pytest.mark.parametrize(("turn", "max_memory"), [(1, 5000), (2, 5000), (3, 10**6)])
def test_a_file_that_is_cut_off_between_passes(solver, name, turn, max_memory, data, tmp_path, monkeypatch):
    (tmp_path / "train").write_bytes(data[:40].to_bytes())
    shards = SequenceShards.make(tmp_path / "train", tmp_path / "new", templates=TEMPLATES, max_memory=max_memory)
    file, size = shards.folder / name, (shards.folder / name).stat().st_size
    begun, begin_pass = [], CallbackMonitor.begin_pass

    def cut_off(self, run):
        begun.append(run)
        if len(begun) == turn:
            os.truncate(file, 4)
        return begin_pass(self, run)

    monkeypatch.setattr(CallbackMonitor, "begin_pass", cut_off)
    loss = "log" if solver is ConditionalLikelihood else "hamming"
    labeler = SequenceLabeler(solver=solver(max_iter=6), loss=loss, templates=TEMPLATES, probability=False)
    with pytest.raises(ValueError, match=rf"new.{name}: has 4 bytes, and had {size} when it was mapped"):
        labeler.fit(shards)
    assert len(begun) == turn


def test_offsets_that_are_cut_off_before_training(data, tmp_path):
    (tmp_path / "train").write_bytes(data[:40].to_bytes())
    shards = SequenceShards.make(tmp_path / "train", tmp_path / "new", templates=TEMPLATES)
    size = (shards.folder / "offsets").stat().st_size
    os.truncate(shards.folder / "offsets", size - 4)
    for use in (SequenceShards.check, SequenceLabeler(C=0.1, templates=TEMPLATES).fit):
        with pytest.raises(ValueError, match=rf"new.offsets: has {size - 4} bytes, and had {size} when it was mapped"):
            use(shards)


def test_streams_of_messages_that_are_cut_off_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"words": [["a", "b"]] * 6, "labels": [["x", "y"]] * 6})
    whole, cut = tmp_path / "whole.arrows", tmp_path / "cut.arrows"
    with pyarrow.ipc.new_stream(whole, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    with pyarrow.OSFile(str(whole)) as file:
        ends = [file.tell() for _ in pyarrow.ipc.open_stream(file)]
    assert len(SequenceShards.make(whole, tmp_path / "made")) == 6
    for end in ends:
        cut.write_bytes(whole.read_bytes()[:end])
        with pytest.raises(ValueError, match=r"cut.arrows: ends without the mark of its end; it may be cut off"):
            SequenceShards.make(cut, tmp_path / "new")


def test_tables_are_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path, empty, cut = (tmp_path / name for name in ("t.parquet", "empty.parquet", "cut.parquet"))
    table = pyarrow.table({"words": [["a", "b"]], "labels": [["x", "y"]]})
    parquet.write_table(table, path)
    parquet.write_table(table.slice(1), empty)
    cut.write_bytes(path.read_bytes()[:3])
    for source, options, message in (
        (path, {"columns": ["words"]}, "t.parquet: has one column"),
        (empty, {}, "empty.parquet: there are no sequences"),
        (cut, {}, "cut.parquet: .*3 bytes"),
    ):
        with pytest.raises(ValueError, match=message):
            SequenceShards.make(source, tmp_path / "new", **options)
    for read in (read_columns, lambda source: list(map(ColumnPieces(source).parse, ColumnPieces(source)))):
        with pytest.raises(ColumnFileError, match=r"t.parquet: is a Parquet or Arrow file, no text; .*with --shards"):
            read(path)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda shards: pickle.loads(pickle.dumps(shards))])
def test_shards_travel_as_their_folder(again, folder, monkeypatch):
    monkeypatch.chdir(folder)
    mapped, memory = (SequenceShards.open("vocabulary-many", mmap=mmap) for mmap in (True, False))
    monkeypatch.chdir("/")
    for shards in (mapped, memory):
        found = again(shards)
        assert found.folder == folder / "vocabulary-many" and found.labels == shards.labels
        assert found.tokens.bounds.tolist() == shards.tokens.bounds.tolist()
        assert found.label_ids.tolist() == shards.label_ids.tolist()
    assert isinstance(again(memory).label_ids.base, type(memory.label_ids.base))
    assert isinstance(again(mapped).label_ids.base, type(mapped.label_ids.base))


def test_vocabulary_in_pieces_is_that_of_the_whole(data):
    X = data.drop_last()
    layout = TemplateLayout.resolve(TEMPLATES, X.n_columns)
    whole, _ = TemplateVocabulary.fit(layout, X, 2)
    for size in (1, 7, 120):
        pieces = [X[a : a + size] for a in range(0, len(X), size)]
        for counts in ([count(layout, pieces)], [count(layout, [piece.compact()]) for piece in pieces]):
            found = TemplateVocabulary.of_counts(layout, counts, 2)
            assert found.names == whole.names
            for name, array in whole.to_arrays().items():
                np.testing.assert_array_equal(found.to_arrays()[name], array)


def test_bounds_of_shards():
    assert shard_bounds(np.array([3, 3, 3, 9, 1]), 6).tolist() == [0, 2, 3, 4, 5]
    assert shard_bounds(np.array([7, 1, 1]), 1e9).tolist() == [0, 3]


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="asks Linux what is in memory")
def test_released_pages_leave_memory(tmp_path):
    np.arange(1 << 20).tofile(tmp_path / "vector")
    vector = Vector(tmp_path / "vector", "<i8", 1 << 20, is_mapped=True)

    def resident():
        lines = iter(Path("/proc/self/smaps").read_text().splitlines())
        mapped = any(line.endswith("/vector") for line in lines)
        return next(int(line.split()[1]) for line in lines if line.startswith("Rss:")) if mapped else 0

    assert vector.array.sum() == (1 << 19) * ((1 << 20) - 1)
    assert resident() == 8192
    vector.release(0, 1 << 19)
    assert resident() == 4096
    assert vector.array[5] == 5


def test_mapped_arrays_travel_as_references(tmp_path):
    np.arange(1 << 16).tofile(tmp_path / "vector")
    mapped, read = (Vector(tmp_path / "vector", "<i8", 1 << 16, is_mapped=on).array for on in (True, False))
    parts = mapped[100:60000], mapped[8:24].reshape(4, 4), np.frombuffer(mapped[5:9].data, "<i8")
    others = mapped[::2], mapped[:0], read[5:]  # in no file, or in no piece of one
    text = dumps_references(parts)
    assert len(text) < 1000 < len(dumps_references(others[0]))
    for part, found in zip((*parts, *others), pickle.loads(dumps_references((*parts, *others))), strict=True):
        np.testing.assert_array_equal(found, part, strict=True)
    assert not pickle.loads(text)[0].flags.writeable
    (tmp_path / "vector").unlink()
    with pytest.raises(ValueError, match=r"workers must find mapped shards under the same path: .*vector"):
        pickle.loads(text)
