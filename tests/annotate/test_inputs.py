"""Files of texts: lines, tables, column files, JSON lines."""

import json
import re

import pytest

from structsvm.annotate import inputs
from structsvm.annotate.answers import Answer, answer_of, scheme_of_tags, tags_of
from structsvm.annotate.inputs import read_inputs
from structsvm.features.text.words import word_spans, words


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def test_words():
    text = "«Oak St.», 12-14 O'Neil's (a.m.)… #5 שלום 👩‍👩‍👧 किताब"
    assert words(text) == [
        *"«",
        "Oak",
        "St",
        *".»,",
        "12-14",
        "O'Neil's",
        "(",
        "a.m",
        *".)…",
        "#",
        "5",
        "שלום",
        "👩‍👩‍👧",
        "किताब",
    ]
    assert all(text[a:b] == word for (a, b), word in zip(word_spans(text), words(text)))
    assert words("...") == list("...") and words(" \t") == []


def test_lines(tmp_path):
    path = written(tmp_path, "a.txt", "\ufeffone two\r\n\n  three \nfour")
    inputs = read_inputs(path)
    assert [item.text for item in inputs.items] == ["one two", "three", "four"]
    assert inputs.lines == [1, 3, 4]


def test_a_column_of_a_table(tmp_path):
    path = written(tmp_path, "a.csv", 'id,text\n1,"a, b"\n2,\n3,"two\nlines"\n4,last\n')
    inputs = read_inputs(path, columns=["text"])
    assert [item.text for item in inputs.items] == ["a, b", "two\nlines", "last"]
    assert inputs.lines == [2, 4, 6]
    assert read_inputs(path, columns=["2"]).items[0].text == "text"
    path = written(tmp_path, "a.tsv", "left\tright\na\tb\n")
    (pair,) = read_inputs(path, "pairs", columns=["left", "right"]).items
    assert (pair.text, pair.other) == ("a", "b")


def test_a_column_file_brings_its_labels(tmp_path):
    path = written(tmp_path, "a.conll", "Oak B-street\nSt I-street\n, O\nReno B-city\n\nElm B-street\n")
    inputs = read_inputs(path)
    assert inputs.labels == ["city", "street"]
    assert inputs.items[0].known == Answer(((0, 2, "street"), (3, 4, "city")))
    assert inputs.items[0].words == ["Oak", "St", ",", "Reno"]


@pytest.mark.parametrize("tags", [["NOUN", "NOUN", "VERB"], ["NN", "NN", "_"], ["NOUN", "_", "VERB"]], ids=str)
def test_a_part_of_speech_is_of_its_word_alone(tmp_path, tags):
    rows = [f"{k}\tw{k}\t_\t{tag}" + 6 * "\t_" for k, tag in enumerate(tags, 1)]
    (item,) = read_inputs(written(tmp_path, "a.conllu", "\n".join(rows) + "\n\n")).items
    spans = tuple((k, k + 1, tag) for k, tag in enumerate(tags) if tag != "_")
    assert item.known == Answer(spans, complete="_" not in tags)
    if "NOUN" in tags and "_" not in tags:
        path = written(tmp_path, "a.conll", "".join(f"w {tag}\n" for tag in tags) + "\n")
        assert read_inputs(path).items[0].known == Answer(spans)
        path = written(tmp_path, "a.jsonl", json.dumps({"words": ["a", "b", "c"], "labels": tags}) + "\n")
        assert read_inputs(path).items[0].known == Answer(spans)


@pytest.mark.parametrize(
    "line",
    [
        {"text": "Oak St, Reno", "spans": [[0, 2, "street"], [3, 4, "city"]]},
        {
            "text": "Oak St, Reno",
            "spans": [{"start": 8, "end": 12, "label": "city"}, {"start": 0, "end": 6, "label": "street"}],
        },
        {"words": ["Oak", "St", ",", "Reno"], "labels": ["B-street", "I-street", "O", "B-city"]},
    ],
    ids=["words", "characters", "tags"],
)
def test_json_lines(tmp_path, line):
    path = written(tmp_path, "a.jsonl", json.dumps(line) + "\n")
    (item,) = read_inputs(path).items
    assert item.words == ["Oak", "St", ",", "Reno"]
    assert item.known == Answer(((0, 2, "street"), (3, 4, "city")))


@pytest.mark.parametrize(
    ("line", "spans"),
    [
        ({"text": "  a b c", "spans": [{"start": 2, "end": 3, "label": "x"}]}, ((0, 1, "x"),)),
        (
            {"text": "a b,c", "words": ["a", "b", ",", "c"], "spans": [{"start": 3, "end": 4, "label": "x"}]},
            ((2, 3, "x"),),
        ),
        (
            {"text": "\na  New York ", "words": ["a", "New York"], "spans": [{"start": 4, "end": 12, "label": "x"}]},
            ((1, 2, "x"),),
        ),
        ({"text": " a b c", "spans": [], "wrong": [{"start": 3, "end": 4, "label": "x"}], "complete": False}, ()),
        ({"text": " a b c", "label": [[3, 4, "x"], [5, 6, "y"]]}, ((1, 2, "x"), (2, 3, "y"))),
        ({"text": "a b", "entities": [{"id": 9, "start_offset": 2, "end_offset": 3, "label": "x"}]}, ((1, 2, "x"),)),
        ({"text": "a b", "entities": [[2, 3, "x"]]}, ((1, 2, "x"),)),
        ({"text": "a b", "labels": [[2, 3, "x"]]}, ((1, 2, "x"),)),
        (
            {"text": "a b", "tokens": [{"text": "a"}, {"text": "b"}], "answer": "accept"}
            | {"spans": [{"start": 2, "end": 3, "token_start": 1, "token_end": 1, "label": "x"}]},
            ((1, 2, "x"),),
        ),
        ({"text": "a  b c", "words": ["a", "b", "C"], "spans": [[1, 3, "x"]]}, ((1, 3, "x"),)),
        ({"text": "a b", "label": [{"start": 2, "end": 3, "text": "b", "labels": ["x"]}], "id": 1}, ((1, 2, "x"),)),
        ({"tokens": ["a", "b"], "ner_tags": ["O", "B-x"]}, ((1, 2, "x"),)),
        ({"text": "a b", "label": [[2, 3, "x"]], "answer": "a field of its own"}, ((1, 2, "x"),)),
        (
            {"text": "a  b\n", "tokens": [{"text": own} for own in ("a", " ", "b", "\n")]}
            | {"spans": [{"start": 3, "end": 4, "label": "x"}]},
            ((1, 2, "x"),),
        ),
        ({"text": "a b", "entities": [{"start": 2, "end": 3, "label": "x"}]}, ((1, 2, "x"),)),
        ({"text": "a b", "spans": [], "label": [], "entities": [[2, 3, "x"]]}, ((1, 2, "x"),)),
        ({"text": "a b", "label": ["pos"], "entities": [[2, 3, "x"]], "annotations": [{}]}, ((1, 2, "x"),)),
        ({"tokens": ["a", "b"], "label": ["O", "B-x"]}, ((1, 2, "x"),)),
        ({"text": "a b", "ner": [{"start": 2, "end": 3, "labels": ["x"]}], "annotation_id": 1}, ((1, 2, "x"),)),
    ],
    ids=[
        "blanks",
        "words",
        "words with blanks",
        "wrong",
        "doccano",
        "doccano's entities",
        "spaCy",
        "doccano's labels",
        "Prodigy",
        "numbers",
        "Label Studio's JSON-MIN",
        "ner_tags",
        "another answer",
        "blank tokens",
        "objects",
        "empty names",
        "classes of the text",
        "tags",
        "control",
    ],
)
def test_spans_count_the_characters_of_their_text(tmp_path, line, spans):
    """Also where the page shows the text otherwise."""
    (item,) = read_inputs(written(tmp_path, "a.jsonl", json.dumps(line) + "\n")).items
    assert item.known.spans == spans
    assert item.known.wrong_spans == (((1, 2, "x"),) if "wrong" in line else ())


def test_an_empty_answer_that_was_confirmed_is_one(tmp_path):
    path = written(tmp_path, "a.jsonl", json.dumps({"text": "a b", "spans": [], "complete": True}) + "\n")
    assert read_inputs(path).items[0].known == Answer()


@pytest.mark.parametrize(
    "line",
    [
        {"spans": [], "_view_id": "ner", "answer": "accept"},
        {"spans": [], "complete": False, "answer": "accept"},
        {"entities": ["Paris"]},
        {"label": ["pos"]},
        {"label": ["pos", "fun"]},
        {"words": ["a", "b"], "label": ["pos"]},
        {"annotations": []},
        {"annotations": ["x"]},
        {"labels": []},
    ],
    ids=lambda line: " ".join(line),
)
def test_a_line_that_says_nothing_of_spans_has_no_answer(tmp_path, line):
    (item,) = read_inputs(written(tmp_path, "a.jsonl", json.dumps({"text": "a b"} | line) + "\n")).items
    assert item.known is None


EMOJI = "\U0001f600"


@pytest.mark.parametrize("shift", [0, 2], ids=["characters", "UTF-16"])
def test_label_studio_counts_characters_or_halves(tmp_path, shift):
    """As another version of it does; the texts of its spans tell."""
    text = f"{EMOJI}{EMOJI} a b c a\nd"
    spans = [
        {"start": 3, "end": 4, "text": "a", "labels": ["x"]},
        {"start": 9, "end": 12, "text": "a\\nd", "labels": ["y"]},
    ]
    spans = [span | {"start": span["start"] + shift, "end": span["end"] + shift} for span in spans]
    (item,) = read_inputs(written(tmp_path, "a.jsonl", json.dumps({"text": text, "label": spans}) + "\n")).items
    assert [item.words[a:b] for a, b, _ in item.known.spans] == [["a"], ["a", "d"]]
    assert [item.words[:a].count("a") for a, _, _ in item.known.spans] == [0, 1]


def test_columns_of_numbers_that_do_not_count(tmp_path):
    for text in ("7 O\n5 O\n\n3 O\n", "1 O\n\n2 O\n", "1 O\n2 O\na O\n"):
        assert read_inputs(written(tmp_path, "a.conll", text)).items


MARKED = {"start": 5, "end": 6, "labels": ["x"]}
UNSURE = {"text": f"{EMOJI}{EMOJI} a b c"}
MIN = {"text": "a b c d", "annotation_id": 7}
SPAN = {"start": 2, "end": 3, "label": "x"}
CHOICES = [{"id": "A", "text": "A"}, {"id": "B", "text": "B"}]


@pytest.mark.parametrize(
    ("task", "line", "known"),
    [
        ("sequence", {"spans": [], "_view_id": "ner_manual"}, Answer()),
        ("sequence", {"spans": [SPAN], "_view_id": "ner"}, Answer(((1, 2, "x"),), complete=False)),
        ("sequence", {"spans": [SPAN], "_view_id": "pos"}, Answer(((1, 2, "x"),), complete=False)),
        ("sequence", {"spans": [SPAN | {"score": 0.5}]}, Answer(((1, 2, "x"),), complete=False)),
        ("sequence", {"spans": [SPAN | {"score": 0.5}], "_view_id": "ner_manual"}, Answer(((1, 2, "x"),))),
        ("sequence", {"spans": [], "entities": [[2, 3, "x"]]}, Answer()),
        ("taxonomy", {"label": "x", "_view_id": "classification"}, Answer(label="x")),
        ("taxonomy", {"options": [{"id": 2, "text": "B"}], "accept": [2]}, Answer(label="B")),
        ("taxonomy", {"options": [{"id": 2}], "accept": [2]}, Answer(label="2")),
        ("taxonomy", {"accept": ["B"], "label": "x"}, Answer(label="x")),
        ("taxonomy", {"label": "x", "answer": "reject"}, Answer(wrong_labels=("x",))),
        ("taxonomy", {"options": CHOICES, "accept": ["B"], "_view_id": "choice"}, Answer(label="B")),
        ("taxonomy", {"options": CHOICES, "accept": []}, None),
        ("taxonomy", {"options": CHOICES, "accept": ["B"], "answer": "reject"}, None),
    ],
    ids=[
        "no span",
        "one span asked about",
        "one word asked about",
        "one span that a model proposed",
        "proposed spans, all asked about",
        "no span any more",
        "class",
        "choice by number",
        "choice without text",
        "accept of its own",
        "other class",
        "choice",
        "no choice",
        "rejected choice",
    ],
)
def test_answers_of_prodigy(tmp_path, task, line, known):
    path = written(tmp_path, "a.jsonl", json.dumps({"text": "a b", "answer": "accept"} | line) + "\n")
    assert read_inputs(path, task).items[0].known == known


@pytest.mark.parametrize("ending", ["json", "json1"])
def test_json_lines_by_other_names(tmp_path, ending):
    assert read_inputs(written(tmp_path, f"a.{ending}", '{"text": "a b"}\n')).items[0].text == "a b"


@pytest.mark.parametrize("answer", ["reject", "ignore"])
def test_answers_that_prodigys_user_did_not_accept_are_none(tmp_path, answer):
    line = {"text": "a b", "spans": [{"start": 2, "end": 3, "label": "x"}], "answer": answer}
    assert read_inputs(written(tmp_path, "a.jsonl", json.dumps(line) + "\n")).items[0].known is None


def test_tags_of_all_lines_are_read_alike(tmp_path):
    """One line of a file of spans in which all labels happen to be names of parts of speech."""
    lines = [{"words": ["a", "b"], "labels": labels} for labels in (["X", "X"], ["street", "O"])]
    path = written(tmp_path, "a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert read_inputs(path).items[0].known == Answer(((0, 2, "X"),))


@pytest.mark.parametrize("name", ["spans", "label", "entities"])
def test_a_text_without_spans_has_no_answer_yet(tmp_path, name):
    (item,) = read_inputs(written(tmp_path, "a.jsonl", json.dumps({"text": "a b", name: []}) + "\n")).items
    assert item.known is None


@pytest.mark.parametrize(
    ("words", "message"),
    [(["a", "c"], "words: 'c' is not what stands next in text, at character 1"), (["a"], "words: they end before 'b'")],
)
def test_words_of_another_text_are_refused_where_spans_count_in_it(tmp_path, words, message):
    line = {"text": "a b", "words": words, "spans": [{"start": 0, "end": 1, "label": "x"}]}
    with pytest.raises(ValueError, match=re.escape(f"a.jsonl:1: {message}")):
        read_inputs(written(tmp_path, "a.jsonl", json.dumps(line) + "\n"))
    assert len(read_inputs(written(tmp_path, "b.jsonl", json.dumps(line | {"spans": None}) + "\n")).items) == 1


def test_labels_of_texts_as_doccano_writes_them(tmp_path):
    lines = [{"text": "a", "label": ["x"]}, {"text": "b", "label": []}]
    path = written(tmp_path, "a.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert [item.known for item in read_inputs(path, "taxonomy").items] == [Answer(label="x"), None]
    path = written(tmp_path, "b.jsonl", json.dumps({"text": "a", "label": ["x", "y"]}) + "\n")
    with pytest.raises(ValueError, match="label has 2 labels, and a text has one"):
        read_inputs(path, "taxonomy")


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"source": "web", "id": 3, "sentiment": "pos"}, "pos"),
        ({"sentiment": {"choices": ["pos"]}}, "pos"),
        ({"label": "pos", "note": "so it seems"}, "pos"),
        ({"source": "web", "id": 3}, None),
    ],
    ids=["named", "choices", "label", "none"],
)
def test_json_min_names_a_class_after_its_control(tmp_path, fields, label):
    line = {"text": "a b", **fields, "annotator": 1, "annotation_id": 7, "created_at": "2026"}
    known = read_inputs(written(tmp_path, "a.jsonl", json.dumps(line) + "\n"), "taxonomy").items[0].known
    assert known == (None if label is None else Answer(label=label))


def test_a_class_is_of_the_text_whatever_its_tokens(tmp_path):
    line = {"text": "Don't go", "tokens": [{"text": "Do"}, {"text": "n't"}, {"text": "go"}], "label": "x"}
    (item,) = read_inputs(written(tmp_path, "a.jsonl", json.dumps(line) + "\n"), "taxonomy").items
    assert (item.text, item.given) == ("Don't go", None)


def test_spans_that_count_words_and_blank_tokens(tmp_path):
    line = {"text": "a  b", "tokens": [{"text": own} for own in ("a", " ", "b")], "spans": [[2, 3, "x"]]}
    with pytest.raises(ValueError, match="tokens that are blank: give spans in characters"):
        read_inputs(written(tmp_path, "a.jsonl", json.dumps(line) + "\n"))


def test_a_pair_has_two_texts_whatever_its_words(tmp_path):
    line = {"text": "a", "other": "b", "words": 2, "tokens": ["a"]}
    (item,) = read_inputs(written(tmp_path, "a.jsonl", json.dumps(line) + "\n"), "pairs").items
    assert (item.text, item.other, item.given) == ("a", "b", None)


def test_spans_of_a_long_line_are_found_in_one_pass(tmp_path, monkeypatch):
    n, n_read = 2000, []
    spans = [{"start": 3 * k, "end": 3 * k + 2, "label": "x"} for k in range(n)]
    path = written(tmp_path, "a.jsonl", json.dumps({"text": "ab " * n, "spans": spans}) + "\n")
    monkeypatch.setattr(inputs, "word_spans", lambda text: (n_read.append(text), word_spans(text))[1])
    (item,) = read_inputs(path).items
    assert item.known == Answer(tuple((k, k + 1, "x") for k in range(n))) and len(n_read) < 5


@pytest.mark.parametrize("wrong", [None, False])
def test_a_foreign_field_wrong_says_nothing(tmp_path, wrong):
    line = {"text": "Oak St", "spans": [[0, 2, "street"]], "label": "x", "wrong": wrong}
    path = written(tmp_path, "a.jsonl", json.dumps(line) + "\n")
    assert read_inputs(path, task="sequence").items[0].known == Answer(((0, 2, "street"),))
    assert read_inputs(path, task="taxonomy").items[0].known == Answer(label="x")
    assert answer_of({"label": "x", "wrong": wrong}, 0, is_sequence=False) == Answer(label="x")


@pytest.mark.parametrize(
    ("name", "text", "how", "message"),
    [
        ("a.txt", "\n \n", {}, "has no text to label"),
        ("a.txt", b"ok\ncaf\xe9\n", {}, r"a\.txt:2: .*--encoding"),
        ("a.txt", "one\n", {"task": "pairs"}, r"a\.txt:1: a pair is two texts with one tab between, found 1"),
        (
            "a.txt",
            "one\tother\none\t \n",
            {"task": "pairs"},
            r"a\.txt:2: a pair is two texts, and one of them is blank",
        ),
        ("a.csv", "x,y\n1,2\n", {}, r"--column names one column of .*: x, y"),
        ("a.csv", "x,y\n1,2\n", {"columns": ["z"]}, r"--column z: .* has the columns x, y"),
        ("a.csv", "x,y\n1\n", {"columns": ["y"]}, r"a\.csv:2: 1 columns, and column 2 is the text"),
        ("a.txt", "one\n", {"columns": ["y"]}, r"--column is for tables"),
        ("a.jsonl", '{"text": "a"}\n{"text": 1}\n', {}, r"a\.jsonl:2: text must be a text"),
        ("a.jsonl", '{"text"\n', {}, r"a\.jsonl:1: no JSON"),
        ("a.jsonl", "[" * 5000 + "\n", {}, r"a\.jsonl:1: no JSON"),
        ("a.jsonl", '{"text": "ab", "spans": [{"start": 0, "end": 1, "label": "x"}]}\n', {}, "not where words begin"),
        ("a.jsonl", '{"text": "a b", "labels": ["O"]}\n', {}, "labels must be a list of 2 texts"),
        ("a.jsonl", '{"text": "a"}\n{"text": "a b", "label": [[0, 1]]}\n', {}, r"a\.jsonl:2: label: \[0, 1\] is no"),
        ("a.jsonl", '{"text": "a b", "label": [[0, 1, "x"], "y"]}\n', {}, r"a\.jsonl:1: label: 'y' is no"),
        ("a.jsonl", '{"tokens": ["a", "b"], "ner_tags": [0, 3]}\n', {}, "ner_tags has the numbers of classes"),
        ("a.jsonl", '{"tokens": ["a", "b"], "ner_tags": ["O"]}\n', {}, "labels must be a list of 2 texts"),
        ("a.jsonl", '{"text": "a b", "label": "x", "labels": [0, 3]}\n', {}, "labels has the numbers of classes"),
        (
            "a.jsonl",
            '{"text": "a b", "label": [{"start": 0, "end": 1, "labels": ["x", "y"]}]}\n',
            {},
            "label has 2 labels, and a span has one",
        ),
        ("a.jsonl", json.dumps(UNSURE | {"label": [MARKED | {"text": "c"}]}) + "\n", {}, "stands 'b', not 'c'"),
        ("a.jsonl", json.dumps(UNSURE | {"label": [MARKED]}) + "\n", {}, "fit as characters and as UTF-16"),
        ("a.jsonl", '{"text": "a b", "spans": [{"start": 0, "end": 1, "label": "x", "text": "b"}]}\n', {}, "'a', not"),
        ("a.jsonl", '{"text": "a b", "label": [[0, 1, "x"], 4]}\n', {}, r"a\.jsonl:1: label: 4 is no"),
        ("a.jsonl", '{"text": "a b", "spans": ["Paris"]}\n', {}, "spans: 'Paris' is no"),
        ("a.jsonl", json.dumps(MIN | {"ner": [MARKED], "org": [MARKED]}) + "\n", {}, "ner and org: each may have"),
        (
            "a.jsonl",
            json.dumps({"source": "web", "sentiment": "pos"} | MIN) + "\n",
            {"task": "taxonomy"},
            "source and sentiment: each may have",
        ),
        ("a.iob", "I|O like|O London|B-GPE\n", {}, r"a\.iob: words with \| and a tag, as in spaCy's"),
        ("a.iob", "I|PRP|O like|VBP|O\nOslo|NNP|B-GPE it|X|O\n", {}, "as in spaCy's"),
        ("a.conll", "1 we O\n2-3 don't O\n2 do O\n3 n't O\n\n1 c O\n", {}, "first column counts words"),
        ("a.conll", "0 a O\n1 b O\n\n2 c O\n3 d O\n3.1 e O\n", {}, "first column counts words"),
        ("a.json", '[\n  {"text": "a", "annotations": []}\n]\n', {}, r"a\.json: a JSON array, as Label Studio"),
        ("a.jsonl", '["a b", {"entities": [[0, 1, "x"]]}]\n', {}, r"a\.jsonl:1: a line is an object"),
        ("a.json", '{"data": {"text": "a"}, "annotations": [{"result": []}]}\n', {}, r"a\.json:1: annotations: Label"),
        ("a.json1", '{"text": "a", "annotations": [{"label": 1}]}\n', {}, r"a\.json1:1: annotations: .*doccano"),
        ("a.ann", "T1\tx 0 1\ta\n", {}, "brat's annotations"),
        ("a.xmi", "<xmi:XMI/>\n", {}, "UIMA's XMI, as INCEpTION exports"),
        ("a.tsv", "#FORMAT=WebAnno TSV 3.3\n\n1-1\t0-1\ta\tx\n", {"columns": ("1",)}, "WebAnno's TSV"),
        ("a.conll", "1\ta\tx\n2\tb\tO\n\n1\tc\tO\n", {}, r"a\.conll: the first column counts words"),
        ("a.jsonl", '{"text": "a b", "entities": [{"start_offset": 0, "label": "x"}]}\n', {}, r"entities: \{.* is no"),
        ("a.conll", "a B-x\n\nb O\nc B-O\n", {}, r"a\.conll:3: word 2 has the tag 'B-O': O is what stands outside"),
        ("a.conll", "# 1\na\tB-x\n\n\n# 2\nb\tB-O\n", {}, r"a\.conll, sequence 2: word 1 has the tag 'B-O'"),
        ("a.jsonl", '{"text": "a", "labels": ["B-O"]}\n', {}, r"a\.jsonl:1: word 1 has the tag 'B-O': O is what"),
        ("a.jsonl", '{"text": "a"}\n{"text": "b\\ud800"}\n', {}, r"a\.jsonl:2: half a character of UTF-16"),
        ("a.csv", 'text\na\n"b\nc\nd\n', {"columns": ["text"]}, r"a\.csv:3: unexpected end of data"),
        ("a.csv", "text,text\na,b\n", {"columns": ["text"]}, "has 2 columns of this name"),
        ("a.conll", "a B-x\n", {"task": "taxonomy"}, "which is the task sequence, not taxonomy"),
    ],
    ids=lambda value: None,
)
def test_errors_name_the_place(tmp_path, name, text, how, message):
    with pytest.raises(ValueError, match=message):
        read_inputs(written(tmp_path, name, text), **how)


def test_lines_end_as_on_any_system(tmp_path):
    for end in ("\n", "\r\n", "\r"):
        found = read_inputs(written(tmp_path, "a.txt", f"one{end}{end}two three{end}"))
        assert [item.text for item in found.items] == ["one", "two three"] and list(found.lines) == [1, 3]


def test_a_table_of_tabs_has_marks_as_they_are(tmp_path):
    found = read_inputs(written(tmp_path, "a.tsv", 'id\ttext\n1\t"a\n2\t"b" c\n3\t"d"\n'), columns=["text"])
    assert [item.text for item in found.items] == ['"a', '"b" c', "d"]


def test_comments_between_lines_with_tabs(tmp_path):
    """With as many words as lines have columns, but no tab; a token with a tab stays one."""
    found = read_inputs(written(tmp_path, "a.conll", "# comment\nA\tB-x\nB\tO\n\n# two\nC\tO\n\n#\tO\nD\tO\n"))
    assert [item.given for item in found.items] == [("A", "B"), ("C",), ("#", "D")]
    assert list(found.labels) == ["x"]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[0, 2, "a"], [1, 3, "b"]], "overlap"),
        ([[0, 4, "a"]], "is no span of 3 words"),
        ([[-1, 1, "a"]], "is no span"),
        ([[1, 1, "a"]], "is no span"),
        ([[True, 2, "a"]], "is no span"),
        ([[0, 1.0, "a"]], "is no span"),
        ([[0, 1, "O"]], "answer.spans: O is what stands outside"),
        ([[0, 1, " O "]], "answer.spans: O is what stands outside"),
        ([[0, 1, " "]], "a text that is not empty"),
        ([[0, 1, "a\nb"]], "printable"),
        ([[0, 1, "\ud800"]], "printable"),
        ([[0, 1]], r"is no \[start, stop, label\]"),
        ("ab", "must be a list"),
    ],
    ids=lambda value: None,
)
def test_answers_that_do_not_fit(spans, message):
    with pytest.raises(ValueError, match=message):
        answer_of({"spans": spans}, 3, is_sequence=True)


@pytest.mark.parametrize(
    "label", ["\u0645\u06cc\u200c\u0631\u0648\u0645", "\U0001f469\u200d\U0001f52c"], ids=["Persian", "emoji"]
)
def test_labels_may_join_their_letters(label):
    assert answer_of({"spans": [[0, 1, label]]}, 3, is_sequence=True) == Answer(((0, 1, label),))
    for wrong in ("\u200d", f"{label}\u202e", f"{label}\u200c", f"\u200d{label}"):
        with pytest.raises(ValueError, match="printable"):
            answer_of({"spans": [[0, 1, wrong]]}, 3, is_sequence=True)


def test_a_partial_answer_says_something():
    with pytest.raises(ValueError, match="mark one first"):
        answer_of({"spans": [], "complete": False}, 3, is_sequence=True)
    assert answer_of({"spans": []}, 3, is_sequence=True) == Answer()


def test_tags_of_answers():
    whole = answer_of({"spans": [[2, 4, "b"], [0, 1, "a"]]}, 5, is_sequence=True)
    assert tags_of(whole, 5) == ["B-a", "O", "B-b", "I-b", "O"]
    assert tags_of(answer_of({"spans": [[2, 4, "b"]], "complete": False}, 5, is_sequence=True), 5) == [
        *[None, None, "B-b", "I-b", None]
    ]
    assert scheme_of_tags(["x", "x", "O"]).chunks(["x", "x", "O", "x"]) == [(0, 2, "x"), (3, 4, "x")]


def test_a_changed_file_is_seen(tmp_path):
    path = written(tmp_path, "a.txt", "one\n")
    inputs = read_inputs(path)
    assert not inputs.has_changed
    written(tmp_path, "a.txt", "one\ntwo\n")
    assert inputs.has_changed
    (tmp_path / "a.txt").unlink()
    assert inputs.has_changed
