"""Features of templates and attributes, string by string; encoded tokens decoded again; data to encode."""

import json
from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from structsvm.features.encoder import FeatureEncoder
from structsvm.features.functions.places import PLACES
from structsvm.features.functions.strings import FUNCTIONS
from structsvm.features.templates import parse_templates


def reference_templates(text, sequences, bigrams=False):
    """Feature strings of every token, as CRF++ makes them; `bigrams`: of templates B, which first tokens have not."""
    templates = [template for template in parse_templates(text)[0] if template.literals[0].startswith("B") == bigrams]
    out = []
    for rows in sequences:
        tokens = []
        for t in range(len(rows)):
            names = []
            for template in templates if t > 0 or not bigrams else []:
                name = template.literals[0]
                for item, literal in zip(template.items, template.literals[1:], strict=True):
                    p = t + item.row
                    if p < 0:
                        value = f"_B-{-p}"
                    elif p >= len(rows):
                        value = f"_B+{p - len(rows) + 1}"
                    else:
                        value = rows[p][item.column]
                        if item.function in PLACES:
                            value = place_reference(item.function, [row[item.column] for row in rows], p)
                        elif item.function != "x":
                            value = FUNCTIONS[item.function]([value])[0]
                    if value is None:
                        break
                    name += value + literal
                else:
                    names.append(name)
            tokens.append(dict(Counter(names)))
        out.append(tokens)
    return out


def place_reference(function, words, t):
    """The value of a function of places at word t, by looking at the others one by one."""
    marks = FUNCTIONS["closing"](words)
    patterns = FUNCTIONS["pattern"](words)
    numbers = [any(c.isdigit() for c in word) for word in words]
    fields = [mark not in (None, ".") for mark in marks]

    def limited(count, most):
        return str(count) if count < most else f"{most}+"

    match function:
        case "start":
            return limited(t, 8)
        case "end":
            return limited(len(words) - 1 - t, 8)
        case "tenth":
            return str(10 * t // len(words))
        case "size":
            sizes = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 32, 40, 50, 65)
            return str(max(size for size in sizes if size <= len(words)))
        case "numbers":
            return f"{limited(sum(numbers[:t]), 2)}-{limited(sum(numbers[t + 1 :]), 2)}"
        case "fields":
            return f"{limited(sum(fields[:t]), 4)}-{limited(sum(fields[t:]), 4)}"
        case "again":
            if patterns.count(patterns[t]) == 1:
                return "once"
            return "again" if patterns[t] in patterns[:t] else "first"
        case "before":
            return next((mark for mark in reversed(marks[:t]) if mark), "none")
        case "behind":
            return next((mark for mark in marks[t:] if mark), "none")
    raise AssertionError(f"no reference of {function!r}")


def reference_token(token, prefix=""):
    """(name, value) pairs of a token, as python-crfsuite takes it apart."""
    if not isinstance(token, dict):
        return [(prefix + item, 1.0) for item in token]
    pairs = []
    for key, value in token.items():
        if isinstance(value, str):
            pairs.append((f"{prefix}{key}:{value}", 1.0))
        elif isinstance(value, (dict, list, set)):
            pairs += reference_token(value, f"{prefix}{key}:")
        else:
            pairs.append((prefix + key, float(np.float32(value))))
    return pairs


def added_up(pairs):
    total = {}
    for name, value in pairs:
        if value:
            total[name] = float(np.float32(total.get(name, 0.0) + value))
    return total


def decoded(tokens, names):
    """Tokens as lists of lists of dicts, checking the layout on the way."""
    assert tokens.offsets.dtype == tokens.indptr.dtype == np.int64
    assert tokens.indices.dtype == np.int32
    assert tokens.offsets[0] == tokens.indptr[0] == 0
    assert tokens.offsets[-1] == tokens.n_tokens
    assert tokens.indptr[-1] == len(tokens.indices)
    if tokens.values is not None:
        assert tokens.values.dtype == np.float32
        assert len(tokens.values) == len(tokens.indices)
    flat = []
    for a, b in pairwise(tokens.indptr.tolist()):
        ids = tokens.indices[a:b]
        assert (np.diff(ids) > 0).all()
        assert ((ids >= 0) & (ids < tokens.n_features)).all()
        values = np.ones(b - a) if tokens.values is None else tokens.values[a:b]
        flat.append({names[i]: float(v) for i, v in zip(ids, values, strict=True)})
    ends = tokens.offsets.tolist()
    return [flat[a:b] for a, b in pairwise(ends)]


def cut(reference, kept):
    return [[{k: v for k, v in t.items() if k in kept} for t in s] for s in reference]


def occurrences(reference):
    return Counter(k for s in reference for t in s for k, v in t.items() for _ in range(int(v)))


def same(a, b):
    assert a.n_features == b.n_features
    assert np.array_equal(a.offsets, b.offsets)
    assert np.array_equal(a.indptr, b.indptr)
    assert np.array_equal(a.indices, b.indices)
    assert (a.values is None) == (b.values is None)
    assert a.values is None or np.array_equal(a.values, b.values)
    assert (a.bigrams is None) == (b.bigrams is None)
    assert a.bigrams is None or same(a.bigrams, b.bigrams)
    return True


def copied_by_arrays(encoder):
    meta, arrays = encoder.to_arrays()
    for array in arrays.values():
        array.flags.writeable = False  # as from a memory map
    again = FeatureEncoder.from_arrays(json.loads(json.dumps(meta)), arrays)
    assert again.feature_names == encoder.feature_names
    assert again.bigram_names == encoder.bigram_names
    assert again.template_bigram == encoder.template_bigram
    return again


TEMPLATES = [
    "U00:%x[-2,0]\nU01:%x[0,0]\nU02:%x[-1,0]/%x[0,0]\nU03:%x[1,1]/%x[3,0]/%x[-1,1]\nB",
    "U:%x[-1,0]\nU:%x[0,0]\nU:%x[1,0]\n",  # one space: a bag of words, values up to 3
    "U\nU1:%x[0,0]%x[0,0]\n",  # a constant
    "U0:%lower[0,0]/%suffix2[-1,0]\nU1:%capital[0,0]\nU2:%shape[1,0]/%prefix3[2,0]",
    "U0:%x[0,0]\nB1:%x[0,0]\nB\nB2:%lower[-1,0]/%x[0,1]\nB1:%x[1,0]",
    "".join(f"U{name}:%{name}[0,0]/%{name}[-1,1]\nB{name}:%x[0,0]/%{name}[1,0]\n" for name in PLACES) + "B",
    "".join(f"U{name}:%{name}[0,0]\n" for name in ("form", "opening", "closing", "pattern", "vowels", "length")),
    "U9:%x[-4,0]/%x[-3,0]/%x[-2,0]/%x[-1,0]/%x[0,0]/%x[1,0]/%x[2,1]/%x[5,0]",
]
words = st.text("abAB1-é.", min_size=1, max_size=3)
row_lists = st.lists(
    st.lists(st.tuples(words, st.sampled_from(["N", "V", "D"])), min_size=1, max_size=6), min_size=1, max_size=5
)
numbers = st.one_of(st.booleans(), st.integers(-3, 3), st.floats(-2, 2, width=16))
keys = st.text("abc:é", max_size=2)
nested = st.recursive(
    st.dictionaries(keys, st.one_of(keys, numbers, st.lists(keys, max_size=3), st.sets(keys, max_size=3)), max_size=4),
    lambda inner: st.dictionaries(keys, st.one_of(keys, numbers, inner), max_size=3),
    max_leaves=6,
)
python_tokens = st.one_of(nested, st.lists(keys, max_size=5), st.sets(keys), st.lists(keys).map(tuple))
python_sequences = st.lists(st.lists(python_tokens, min_size=1, max_size=4), min_size=1, max_size=4)
