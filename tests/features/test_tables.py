"""Data frames, Arrow tables, data sets and CoNLL-U as columns."""

import json
from types import SimpleNamespace

import pytest

from structsvm.features.columns import ColumnFileError, Columns
from structsvm.features.encoder import FeatureEncoder

WORDS, IDS = [["The", "dog", "barks"], ["It", "ran"]], [[0, 1, 2], [0, 2]]
NAMES = ["O", "B-X", "I-X"]
ROWS = {"token": ["The", "dog", "barks", "It", "ran"], "tag": ["O", "B-X", "I-X", "O", "I-X"]}


def as_lists(columns):
    return [columns.column(j) for j in range(columns.n_columns)]


def frames(data):
    """The table in each of the libraries that are here."""
    pandas = pytest.importorskip("pandas")
    yield pandas.DataFrame(data)
    for library in ("polars", "pyarrow"):
        try:
            module = __import__(library)
        except ImportError:
            continue
        yield module.DataFrame(data) if library == "polars" else module.table(data)


def test_words_are_rows_of_one_column():
    columns = Columns.from_sequences(WORDS)
    assert as_lists(columns) == [WORDS]
    assert list(columns) == WORDS
    with pytest.raises(TypeError, match="sequence 1 must be a list of tokens, got the string 'It'"):
        Columns.from_sequences([["The"], "It"])
    with pytest.raises(ColumnFileError, match="sequence 1, token 0: expected 1 columns, found 2"):
        Columns.from_sequences([["The"], [("It", "PRP")]])


def test_words_have_the_features_of_their_column():
    words, columns = FeatureEncoder(), FeatureEncoder()
    one, two = words.fit_transform(WORDS), columns.fit_transform(Columns.from_sequences(WORDS))
    assert words.feature_names == columns.feature_names
    assert one.indices.tolist() == two.indices.tolist()
    assert words.transform([["dog"], []]).indptr[-1] == columns.transform([[("dog",)], []]).indptr[-1] > 0
    with pytest.raises(ValueError, match=r"sequence 0, token 1: templates need columns"):
        words.transform([["The", {"word": "dog"}]])
    for frame in frames(ROWS):
        with pytest.raises(TypeError, match=r"a table .*from_dataframe"):
            FeatureEncoder().fit(frame)


def test_a_row_per_sequence():
    for frame in frames({"id": ["a", "b"], "tokens": WORDS, "ner_tags": IDS}):
        columns = Columns.from_dataframe(frame, ["tokens", "ner_tags"], names={"ner_tags": NAMES})
        assert as_lists(columns) == [WORDS, [["O", "B-X", "I-X"], ["O", "I-X"]]]
        with pytest.raises(ValueError, match="token 0: column 'ner_tags' holds 0, expected a string; names"):
            Columns.from_dataframe(frame, ["tokens", "ner_tags"])
        with pytest.raises(ValueError, match="sequence 0, token 2: column 'ner_tags' holds 2, expected one of 0 to 1"):
            Columns.from_dataframe(frame, ["tokens", "ner_tags"], names={"ner_tags": NAMES[:2]})
        with pytest.raises(ValueError, match="row 0: column 'id' holds 'a', not a list"):
            Columns.from_dataframe(frame)
        with pytest.raises(ValueError, match="no column 'ner'; it has 'id', 'tokens', 'ner_tags'"):
            Columns.from_dataframe(frame, ["ner"])
        with pytest.raises(ValueError, match="'columns' parameter must be a list of names, got 'id'"):
            Columns.from_dataframe(frame, "id")
    with pytest.raises(ColumnFileError, match="row 1: 2 values in column 'a', 1 in 'b'"):
        Columns.from_dataframe(next(frames({"a": WORDS, "b": [["x", "y", "z"], ["x"]]})))
    with pytest.raises(ColumnFileError, match="sequence 1 is empty"):
        Columns.from_dataframe(next(frames({"a": [["x"], []]})))
    with pytest.raises(TypeError, match=r"a data frame, an Arrow table .*, got dict"):
        Columns.from_dataframe({"a": WORDS})


def test_a_row_per_token():
    # As Kaggle's table of entities has it, the sequence is named at its first token only.
    for keys in ([7, 7, 7, 3, 3], [7, None, None, 3, None]):
        for frame in frames({"sentence": keys, **ROWS}):
            columns = Columns.from_dataframe(frame, sequence="sentence")
            assert as_lists(columns) == [WORDS, [["O", "B-X", "I-X"], ["O", "I-X"]]]
    frame = next(frames({"sentence": [1, 2, 1, 1, 1], **ROWS}))
    with pytest.raises(ValueError, match=r"row 2: sequence 1.* goes on after others"):
        Columns.from_dataframe(frame, sequence="sentence")
    with pytest.raises(ValueError, match="row 0: column 'sentence' must name the sequence"):
        Columns.from_dataframe(next(frames({"sentence": [None, 1, 1, 1, 1], **ROWS})), sequence="sentence")


@pytest.mark.parametrize("kind", ["Sequence", "List", "list"])
def test_class_labels_of_a_data_set(kind):
    pa = pytest.importorskip("pyarrow")
    label = {"names": NAMES, "_type": "ClassLabel"}
    features = {"tokens": {}, "ner_tags": [label] if kind == "list" else {"feature": label, "_type": kind}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table({"tokens": WORDS, "ner_tags": IDS}).replace_schema_metadata(metadata)
    # A data set of Hugging Face gives its table, with these metadata, in this way.
    dataset = SimpleNamespace(with_format=lambda form: table if form == "arrow" else None)
    for frame in (table, dataset):
        columns = Columns.from_dataframe(frame)
        assert as_lists(columns) == [WORDS, [["O", "B-X", "I-X"], ["O", "I-X"]]]
    forged = [{"info": {"features": {"tokens": {"names": names, "_type": "ClassLabel"}}}} for names in (3, "ab", [1])]
    for metadata in ("[]", "[" * 100_000, *map(json.dumps, forged)):
        with pytest.raises(ValueError, match="metadata"):
            Columns.from_dataframe(table.replace_schema_metadata({"huggingface": metadata}))


CONLLU = """# sent_id = 1
# text = He cannot
1\tHe\the\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2-3\tcannot\t_\t_\t_\t_\t_\t_\t_\t_
2\tcan\tcan\tAUX\tMD\t_\t0\troot\t_\t_
3\t#\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tgo\tgo\tVERB\t_\t_\t_\t_\t_\t_

1\t10 000\t_\tNUM\t_\t_\t0\troot\t_\t_
"""


def test_conllu():
    columns = Columns.from_conllu(CONLLU.splitlines(), ["FORM", "upos", "deprel"])
    assert as_lists(columns)[0] == [["He", "can", "#"], ["10 000"]]
    assert next(iter(columns))[2] == ("#", "PART", "advmod")
    assert as_lists(Columns.from_conllu(CONLLU.splitlines())) == as_lists(columns)[:2]
    plus = ["# global.columns = ID FORM NER", "1\tMr.\tB", "", "1\tX\tI"]
    assert as_lists(Columns.from_conllu(plus, ["ner"])) == [[["B"], ["I"]]]


@pytest.mark.parametrize(
    ("lines", "columns", "message"),
    [
        (["1\tHe"], ["form"], "<lines>:1: expected 10 columns between tabs, found 2"),
        (["# global.columns = ID X", "", "a\tHe"], ["x"], "<lines>:3: 'a' is not the number"),
        (["# global.columns = ID X"], ["form"], "no column 'form'; there are id, x"),
        (["# nothing"], ["form"], "no tokens"),
    ],
)
def test_conllu_that_is_none(lines, columns, message):
    with pytest.raises(ColumnFileError, match=message):
        Columns.from_conllu(lines, columns)


def test_a_label_by_name_and_words_that_look_missing():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"tag": ["A", "B", "A"], "word": ["null", "NA", ""], "sentence": [1, 1, 2]})
    for columns in (None, ["word"]):
        found = Columns.from_dataframe(frame, columns, label="tag", sequence="sentence")
        assert list(found) == [[("null", "A"), ("NA", "B")], [("", "A")]]
    with pytest.raises(ValueError, match="the frame has no column 'label'"):
        Columns.from_dataframe(frame, label="label", sequence="sentence")
    frame.loc[1, "word"] = float("nan")
    with pytest.raises(ValueError, match=r"sequence 0, token 1: column 'word' holds nan.*keep_default_na=False"):
        Columns.from_dataframe(frame, sequence="sentence")
