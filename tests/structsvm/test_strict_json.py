"""Strict JSON: what is a value, what is not, and where the bounds are."""

import json

import pytest

from structsvm.files.strict_json import MAX_DEPTH, MAX_DIGITS, json_problem, parse_json

LARGEST = 10**MAX_DIGITS - 1


def nested(depth):
    value = 1
    for k in range(depth):
        value = [value] if k % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    "value", [None, True, "é", 0.5, LARGEST, -LARGEST, [], {}, {"a": [1, {"b": None}]}, nested(MAX_DEPTH)]
)
def test_values_go_around(value):
    assert json_problem(value) is None
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (float("nan"), " is nan, which JSON does not have"),
        (LARGEST + 1, f" is an integer of more than {MAX_DIGITS} digits"),
        (-LARGEST - 1, f" is an integer of more than {MAX_DIGITS} digits"),
        ((1,), " is of type tuple, which JSON does not have"),
        ({"C": [0.0, float("inf")]}, "['C'][1] is inf, which JSON does not have"),
        ({"C": {1: 2}}, "['C'] has the key 1, which is not a str"),
    ],
)
def test_what_is_no_value(value, problem):
    assert json_problem(value) == problem


def test_bounds():
    assert json_problem(nested(MAX_DEPTH + 1)).endswith(f" is nested deeper than {MAX_DEPTH} levels")
    assert parse_json(b"-" + b"9" * MAX_DIGITS) == -LARGEST
    for text in (
        b"9" * (MAX_DIGITS + 2),
        b"-" + b"9" * (MAX_DIGITS + 1),
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"\xff",
        b"",
    ):
        with pytest.raises(ValueError):
            parse_json(text)


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "a": 3}', '[{"b": {"a": 1, "a": 1}}]'])
def test_a_key_twice_is_an_error(text):
    with pytest.raises(ValueError, match="the key 'a' stands twice in an object"):
        parse_json(text.encode())
