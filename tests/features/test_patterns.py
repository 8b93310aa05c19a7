"""Patterns of Wapiti and CRF++: commands, boundaries, the dialect of regular expressions."""

import pytest

from structsvm.features.functions.patterns import (
    PatternError,
    compile_regex,
    parse_crfpp,
    parse_wapiti,
    read_wapiti_patterns,
)

TOKENS = [[b"The", b"D"], [b"Cat", b"N"], [b"x2-y", b"F"]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("u:%x[0,0]", [b"u:The", b"u:Cat", b"u:x2-y"]),
        ("U:%X[ -1,0]/%x[+1,1]", [b"u:_x-1/N", b"u:the/F", b"u:cat/_x+1"]),
        ("b:%x[-6,0]", [b"b:_x-#", b"b:_x-#", b"b:_x-4"]),
        ("*:%x[5,0]", [b"*:_x+3", b"*:_x+4", b"*:_x+#"]),
        ("u:%x[@1,0]%x[@-1,1]%x[@0,0]", [b"u:TheF_x-1"] * 3),
        (r'u:%t[0,0,"^\u\l*$"]', [b"u:true", b"u:true", b"u:false"]),
        (r'u:%T[-1,0,"_x"]', [b"u:true", b"u:false", b"u:false"]),
        (r'u:%m[0,0,"\d\p"]%M[0,0,"^\u"]', [b"u:t", b"u:c", b"u:2-"]),
        ("*", [b"*"] * 3),
    ],
)
def test_apply(line, expected):
    assert parse_wapiti(line).apply(TOKENS) == expected


@pytest.mark.parametrize(
    ("regex", "string", "match"),
    [
        (rb"a*", b"aaa", b""),  # as few as possible
        (rb"a*$", b"baaa", b"aaa"),
        (rb"^a?b", b"ab", b"ab"),
        (rb"a+", b"aa", None),
        (rb"(a|b)", b"a", None),
        (rb"\.", b"a.b", b"."),
        (rb"\W\S", b"a -", b" -"),
        (rb"$a", b"$a", b"$a"),
        (rb"a^", b"a^", b"a^"),
        (rb"\A", "é".encode(), b"\xc3"),
        (rb"\l", "é".encode(), None),
    ],
)
def test_regex(regex, string, match):
    found = compile_regex(regex).search(string)
    assert (found and found[0]) == match


@pytest.mark.parametrize(
    "line",
    [
        *("x:%x[0,0]", "u:%y[0,0]", "u:%x[0]", "u:%x[0,-1]", "u:%", 'u:%x[0,0,"a"]', "u:%t[0,0]", 'u:%t[0,0,"a]'),
        *('u:%m[0,0,"*"]', 'u:%m[0,0,"a**"]', "u:%x[9999999,0]", "u:%x[010,0]", ""),
    ],
)
def test_unknown_forms_are_refused(line):
    with pytest.raises(PatternError, match="file:3: "):
        parse_wapiti(line, "file:3")


def test_files():
    patterns = read_wapiti_patterns("# head\nU:%x[0,0] # word\n\n  \n*\n", "p")
    assert [pattern.source for pattern in patterns] == ["u:%x[0,0]", "*"]
    with pytest.raises(PatternError, match="p:2: "):
        read_wapiti_patterns("u\n u:%x[0,0]", "p")


def test_crfpp():
    assert parse_crfpp("U02:%x[-2,0]/%x[1,1]").apply(TOKENS) == [b"U02:_B-2/N", b"U02:_B-1/F", b"U02:The/_B+1"]
    for line in ("u:%x[0,0]", "U%x[-9,0]", "U%X[0,0]"):
        with pytest.raises(PatternError, match="t:1: "):
            parse_crfpp(line, "t:1")
