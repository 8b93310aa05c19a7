"""The template parser, the built-in sets and the functions of strings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structsvm.features.functions.strings import FUNCTIONS
from structsvm.features.templates import (
    BUILT_IN_TEMPLATES,
    Item,
    TemplateError,
    built_in_templates,
    parse_templates,
    read_templates,
)


def test_templates_are_parsed():
    text = "# words\r\nU00:%x[-2,0]\r\n\nU05:%x[-1,0]/%x[0,0]|\n  U\nU30:%shape[0,1]\nB\n"
    templates, bigram = parse_templates(text)
    assert bigram
    assert [str(t) for t in templates] == ["U00:%x[-2,0]", "U05:%x[-1,0]/%x[0,0]|", "U", "U30:%shape[0,1]"]
    assert templates[1].items == (Item("x", -1, 0), Item("x", 0, 0))
    assert templates[1].literals == ("U05:", "/", "|")
    assert not parse_templates("U00:%x[0,0]")[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("B01:%x[0]", r"wanted %x\[row,column\]"),
        ("B01:%y[0,0]", "no function 'y'"),
        ("X00:%x[0,0]", "starts with 'U' or 'B'"),
        ("U00:%x[0]", r"wanted %x\[row,column\]"),
        ("U00:%x[0,-1]", r"wanted %x\[row,column\]"),
        ("U00:%y[0,0]", "no function 'y' .there are x, lower"),
        ("U00:%x[101,0]", "row 101 is not within"),
        ("U00:50%", "after '%'"),
    ],
)
def test_template_errors_name_the_line(line, message):
    with pytest.raises(TemplateError, match=f"my.tpl:3: .*{message}"):
        parse_templates(f"# a\n\n{line}\n", "my.tpl")


def test_bigram_templates():
    templates, bigram = parse_templates("U00:%x[0,0]\nB01:%x[-1,0]/%x[0,1]\nB\nBx\n")
    assert bigram
    assert [(str(t), t.is_bigram) for t in templates] == [("U00:%x[0,0]", False), ("B01:%x[-1,0]/%x[0,1]", True)]
    assert parse_templates("B01:%x[0,0]")[1]


def test_too_many_templates():
    with pytest.raises(TemplateError, match="more than"):
        parse_templates("U:%x[0,0]\n" * 2000)


def test_template_files(tmp_path):
    path = tmp_path / "my.tpl"
    path.write_text("U00:%x[0,0]\nB\n")
    templates, bigram = read_templates(path)
    assert len(templates) == 1
    assert bigram
    path.write_text("U00:%x[0,0]\nB1:%x[0]\n")
    with pytest.raises(TemplateError, match=r"my\.tpl:2:"):
        read_templates(path)
    path.write_bytes(b"U\xff")
    with pytest.raises(TemplateError, match=r"my\.tpl: bytes"):
        read_templates(path)


@pytest.mark.parametrize("name", BUILT_IN_TEMPLATES)
@pytest.mark.parametrize("n_columns", [1, 2, 3, 6])
def test_built_in_templates(name, n_columns):
    templates, bigram = parse_templates(built_in_templates(name, n_columns))
    assert bigram
    assert len({t.literals for t in templates}) == len(templates)
    assert all(item.column < n_columns for t in templates for item in t.items)
    if name == "rich":
        assert len(templates) <= 35 + 3 * max(0, n_columns - 2)
    if name == "crf++" and n_columns > 1:
        assert len(templates) == 19
    if name == "attributes":
        assert len(templates) == n_columns


@given(st.lists(st.text(max_size=8), unique=True, max_size=10))
def test_functions_of_strings(words):
    for function in FUNCTIONS.values():
        values = function(words)
        assert len(values) == len(words)
        assert all(v is None or isinstance(v, str) for v in values)
        assert function(words) == [function([w])[0] for w in words]  # word by word


def test_combining_characters_belong_to_the_one_before_them():
    def of(name, *words):
        return FUNCTIONS[name](list(words))

    words = ("நிலம்", "(நிலம்).", "बिहारी,", "บ่าย", "E\u0301tat", "❤\ufe0f", "a.\u0301")
    assert of("shape", *words) == ["x", "(x).", "x,", "x", "Xx", "❤", "x."]
    assert of("form", *words) == ["x3", "(x3).", "x3,", "x3", "Xx3", "❤", "x."]
    assert of("closing", *words) == [None, ").", ",", None, None, "❤\ufe0f", ".\u0301"]
    assert of("opening", *words) == [None, "(", None, None, None, None, None]
    bare = ["நிலம்", "நிலம்", "बिहारी", "บ่าย", "e\u0301tat", "❤\ufe0f", "a"]
    assert of("pattern", *words) == bare
    # A combining character that follows nothing is no mark.
    assert of("closing", "\u0301", "\u0301.") == [None, "."]
    assert of("opening", "\u0301a", ".\u0301a") == [None, ".\u0301"]


def test_functions_by_example():
    def of(name, word):
        return FUNCTIONS[name]([word])[0]

    assert of("shape", "McDonald-1999s") == "XxXx-dx"
    assert of("shape", "Élan") == "Xx"
    assert of("prefix3", "Straße") == "Str"
    assert of("suffix2", "Straße") == "ße"
    assert of("prefix4", "cat") is None
    assert [of("digit", w) for w in ("1999", "a1", "a")] == ["all", "some", None]
    assert [of("capital", w) for w in ("USA", "Usa", "iOS", "A", "usa", "12")] == [
        "all", "first", "inside", "first", None, None,
    ]  # fmt: skip
    assert [of("hyphen", w) for w in ("a-b", "ab")] == ["some", None]
    assert [of("form", w) for w in ("Main", "60611-1234", "5th", "a.b", "O'Neill")] == [
        "Xx3", "d5-d4", "dx2", "x.x", "X'Xx4",
    ]  # fmt: skip
    assert of("form", "x" * 99) == "x6"
    words = ("Main,", "(12th).", "St.", "-", "a-b", "_")
    assert [of("opening", w) for w in words] == [None, "(", None, None, None, None]
    assert [of("closing", w) for w in words] == [",", ").", ".", "-", None, "_"]
    assert [of("pattern", w) for w in words] == ["main", "00th", "st", "-", "a-b", "_"]
    assert [of("vowels", w) for w in ("Str.", "Ave", "Öp", "zéro", "12", "-")] == [
        "none",
        "some",
        "none",
        "some",
        None,
        None,
    ]
    assert [of("length", w) for w in ("a", "a" * 9, "a" * 10, "a" * 50)] == ["1", "9", "10+", "10+"]


def test_marks_before_a_letter_are_read_once():
    """A ruled line that is glued to a word: time is linear in its length."""
    word = "-\u0301" * 40_000 + "a"
    assert FUNCTIONS["closing"]([word]) == [None]
