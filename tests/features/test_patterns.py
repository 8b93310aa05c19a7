"""Patterns of Wapiti and CRF++: commands, boundaries, the dialect of regular expressions."""

import pytest

from structsvm.features.functions.expressions import Expression
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
    ("line", "string", "observation"),
    [
        (r'u:%m[0,0,"\d?\d\d"]/z', b"12", b"u:12"),
        (r'u:%m[0,0,"\d?\d\d"]/z', b"12x", b"u:12x"),
        (r'u:%m[0,0,"\d?\d\d"]/z', b"123", b"u:123/z"),
        (r'u:%m[0,0,"\d?\d\d"]/z', b"x", b"u:/z"),
        (r'u:%M[0,0,"^a?ab"]z', b"abC", b"u:abcz"),
        (r'u:%m[-1,0,"_?_"]/z', b"a", b"u:_x/z"),
        (r'u:%m[0,0,"\l?b*\d"]/z', b"bbb1yy", b"u:bbb1/z"),
        (r'u:%m[0,0,"a?b?ac"]/z', b"acde", b"u:acd/z"),
        (r'u:%m[0,0,"a?b*ac$"]/z', b"aac", b"u:aac/z"),
        (r'u:%m[0,0,"a?ab*$"]/z', b"xab", b"u:ab"),
        (r'u:%t[0,0,"\d?\d\d"]/z', b"12", b"u:true/z"),
    ],
)
def test_wapiti_takes_more_than_matches(line, string, observation):
    """Observations are those of the program's model files."""
    assert parse_wapiti(line).apply([[string]]) == [observation]


def test_long_expressions_end():
    """Each place of a string is tried once with each rest of the expression, and each set of characters made once."""
    doubled = Expression.parsed(rb"\w?" * 60 + b"-")
    assert doubled.overruns
    assert doubled.taken(b"a" * 60) is None
    assert doubled.taken(b"a" * 3 + b"-") == b"aaa-"
    assert Expression.parsed(rb"\w?" * 5000 + b"-").taken(b"aa-") == b"aa-"
    letters = [
        chr(code).encode("latin-1") for code in range(1, 256) if not chr(code).isalnum() and chr(code) not in "*?"
    ]
    apart = Expression.parsed(b"".join(b"\\" + letter + b"?" for letter in letters) + b"a" * 5000)
    assert not apart.overruns


@pytest.mark.parametrize("regex", [r"^.?.?.?", r".?.?$", r"\.?\d", r"\d\d?/", r"a*ab", r"\d?a?$", r"\d?\l*$"])
def test_wapiti_takes_what_matches_where_nothing_is_tried_twice(regex):
    (command,) = parse_wapiti(f'u:%m[0,0,"{regex}"]').commands
    assert not command.overruns


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
    patterns = read_wapiti_patterns("# head\nU:%x[0,0] # word\n\n  \nu\xa0\n*\n", "p")
    assert [pattern.source for pattern in patterns] == ["u:%x[0,0]", "u\xa0", "*"]
    with pytest.raises(PatternError, match="p:2: "):
        read_wapiti_patterns("u\n u:%x[0,0]", "p")


def test_crfpp():
    assert parse_crfpp("U02:%x[-2,0]/%x[1,1]").apply(TOKENS) == [b"U02:_B-2/N", b"U02:_B-1/F", b"U02:The/_B+1"]
    for line in ("u:%x[0,0]", "U%x[-9,0]", "U%X[0,0]"):
        with pytest.raises(PatternError, match="t:1: "):
            parse_crfpp(line, "t:1")
