"""Models for the runtime in C, and the runtime compiled, for the tests that compare it with Python."""

import importlib
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np

from structsvm.datasets import make_sequences
from structsvm.tasks import SequenceLabeler, TokenFeatures

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "structsvm" / "export" / "runtime"
STRUCTURES = ("sequences", "segments", "documents", "trees")
# The sources of the runtime, by structure.
SOURCES = {structure: RUNTIME / f"structsvm_{structure}.c" for structure in STRUCTURES}
NODE = shutil.which("node")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
C_OPTIONS = ("-std=c99", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")

# The runtime of sequences, which counts what it allocates.
COUNTED = """
#include <stdlib.h>
static long n_allocations;
static void *counted(size_t size) { n_allocations++; return malloc(size); }
static void *counted_zeros(size_t n, size_t size) { n_allocations++; return calloc(n, size); }
#define malloc counted
#define calloc counted_zeros
#include "structsvm_sequences.c"
long structsvm_allocations(void) { return n_allocations; }
"""

X, Y = make_sequences(60, n_labels=3, n_words=60, mean_length=6.0, random_state=0)
# Words with what functions of strings see: cases, digits, marks, accents, letters beyond the first plane.
ODD = [
    "", "-", "...", "Straße", "İstanbul", "ΟΔΥΣΣΕΥΣ", "ΟΔΥΣΣΕΥΣ.", "Σ", "ΑΣΑ", "ﬁne", "ǅ", "ⅷ", "x²", "٣٤", "한국",
    "e\u0301tude", "(5th)", "60611-1234", "St.", "McDonald's", "A1B2", "ʰΣ", "\U0001d400\U0001d401", "\ud800",
    "ÀÉÎ", "naïve", "_x_", "10.", "straße!!!", "\u0345Σ", "aaaaaaaa", "XX11..--",
    "நிலம்", "(நிலம்).", "बिहारी,", "ข้าว", "E\u0301T", "\u0301", ".\u0301", "\u0301.", ".\u0301a", "a.\u0301.",
]  # fmt: skip
ODD_SEQUENCES = [ODD, ODD[::-1], ODD[5:9], ["60611", "Main", "St.,", "Main", "st", "60611"], ["a"] * 40, [","], []]
FUNCTIONS = "\n".join(
    [f"U{k}:%{name}[{k % 3 - 1},0]" for k, name in enumerate(
        ["lower", "shape", "digit", "capital", "hyphen", "form", "length", "opening", "closing", "pattern", "vowels"]
        + [f"{end}{size}" for end in ("prefix", "suffix") for size in range(1, 7)]
    )]
    + ["U:%x[-1,0]", "U:%x[1,0]", "U:%x[2,0]", "U00:%lower[0,0]/%shape[-2,0]/%suffix3[3,0]", "U99", "B"]
)  # fmt: skip


def opener(runtime, fitted):
    """A function from the name of a model that `fitted` returns to that model, opened once by the runtime."""
    return cache(lambda name: runtime.load(bytes_of(fitted(name))))


def bytes_of(model):
    """The model's file, as it is exported."""
    return bytes_by(model.export)


def bytes_by(export):
    """The file that a function writes to a folder."""
    with tempfile.TemporaryDirectory() as folder:
        export(folder)
        return (Path(folder) / "model.bin").read_bytes()


def dicts(sequences):
    return [[{"w": token[0], "nested": {"length": str(len(token[0]))}} for token in tokens] for tokens in sequences]


def attributes(sequences):
    return [[[f"w={token[0]}", "bias", "bias"] for token in tokens] for tokens in sequences]


def columns(sequences):
    return [[(token[0], token[0][-1]) for token in tokens] for tokens in sequences]


def words(sequences):
    return [[token[0] for token in tokens] for tokens in sequences]


def odd(sequences):
    """Words of which some are odd."""
    return [
        [token[0] if (s + t) % 2 else ODD[(3 * s + 5 * t) % len(ODD)] for t, token in enumerate(tokens)]
        for s, tokens in enumerate(sequences)
    ]


SHORT = {"constraints": "max_length(NP, 2)", "broken": "predict", "C": 0.1}
# How tokens are given, and the parameters.
MODELS = {
    "tuples": (list, {"loss": "hamming"}),
    "words": (words, {"loss": "log", "C": 1.0}),
    "dicts": (dicts, {"C": 0.1}),
    "attributes": (attributes, {"loss": "log", "C": 0.1}),
    "bigrams": (dicts, {"features": TokenFeatures(bigrams="w", end=True), "C": 0.1, "loss": "log"}),
    "bigrams of order 2": (dicts, {"features": TokenFeatures(bigrams="w", end=True), "C": 0.1, "order": 2}),
    "templates with bigrams": (list, {"templates": "U0:%x[0,0]\nB\nB0:%x[0,0]\n", "C": 0.1}),
    "order 2": (list, {"order": 2, "C": 0.1, "loss": "log"}),
    "masks": (list, {"constraints": "bio", "C": 0.1, "loss": "log"}),
    "masks of order 2": (list, {"constraints": "bio", "C": 0.1, "order": 2, "loss": "log"}),
    "automaton": (words, {**SHORT, "loss": "log"}),
    "automaton of order 2": (words, {**SHORT, "order": 2}),
    "automaton and bigrams": (dicts, {**SHORT, "features": TokenFeatures(bigrams="w", end=True), "loss": "log"}),
    "records": (odd, {"templates": "records", "C": 0.1, "loss": "log"}),
    "kinds": (odd, {"templates": "record-kinds", "C": 0.1, "loss": "log"}),
    "functions": (odd, {"templates": FUNCTIONS, "C": 0.1}),
    "wapiti": (words, {"templates": "*:a=%x[0,0]\nu:b=%X[-1,0]/%x[1,0]\n", "C": 0.1}),
    "sparse": (list, {"solver": "sparse_likelihood", "loss": "log", "C": 1.0, "templates": "rich"}),
}  # fmt: skip
# Models of whole segments, whose runtime is another source.
SEGMENTS = {
    "segments": (words, {"segments": True, "loss": "log"}),
    "segments of columns": (columns, {"segments": 2, "C": 1.0, "templates": "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\n"}),
    "segments of dicts": (dicts, {"segments": 3, "loss": "log", "C": 1.0}),
    "segments of attributes": (attributes, {"segments": True}),
    "segments under rules": (words, {**SHORT, "segments": 3, "loss": "log"}),
    "segments of odd words": (odd, {"segments": True, "templates": "record-tokens", "loss": "log", "C": 1.0}),
}
MODELS |= SEGMENTS


def fitted(name, n=None):
    """A model of the first n sequences."""
    return fitted_to(name, n)


@cache
def fitted_to(name, n):
    given, params = MODELS[name]
    has_tags = not params.keys().isdisjoint(("constraints", "segments"))
    labels = Y if has_tags else [[label.replace("I-", "J-") for label in tags] for tags in Y]
    params = {"max_iter": 3, "random_state": 0, "C": 0.1, **params}
    return SequenceLabeler(**params).fit(given(X[:n]), labels[:n])


SEGMENTED = [["san", "diego", "is", "in", "new", "york"], ["we", "saw", "diego"], ["in", "san", "diego"]] * 4
SEGMENTS_OF_WORDS = [["B-L", "I-L", "O", "O", "B-L", "I-L"], ["O", "O", "B-P"], ["O", "B-L", "I-L"]] * 4


def with_tokens(token, **params):
    """A model of the words as tokens that a function makes of them, and these."""
    X = [[token(word) for word in words] for words in SEGMENTED]
    model = SequenceLabeler(segments=True, C=1.0, loss="log", random_state=0, **params)
    return model.fit(X, SEGMENTS_OF_WORDS), X


# Tokens of dicts of which some have no word, as Python sees it, but attributes that begin as one does.
OTHERS = [
    {"w": ["san"]}, {"w": ["in", "san"]}, {"w": {"san": 1.0}}, {"w": {"san": "x"}}, {"w:san": 1.0}, {"w:san": True},
    {"w": "san", "w:a": True}, {"w": "san", "w:b": "c"}, {"w:b": "c", "w": "san"}, {"w=a": "b", "w": "san"},
    {"w=san": True}, {"w:a=b": "c"}, {"w": ""}, {"w": ":san"}, {"w": True}, {},
]  # fmt: skip


def shown_labels(model):
    """The labels that a model's outputs have: of segments in the scheme of training, `classes_` being their tags."""
    return list(dict.fromkeys(model.model_.shown))


def columns_of_labels(model):
    """By which of them each of `classes_` is shown: array (n_classes, n_shown) of 0 and 1."""
    return np.array([[label == own for label in shown_labels(model)] for own in model.model_.shown], dtype=float)


def sequences(name):
    """Sequences to label: those of training, odd ones, long ones, and none."""
    given, _ = MODELS[name]
    found = given(X)
    if given is words:  # Wapiti's commands see bytes, which a lone surrogate has none of
        found = found + [[word for word in x if word != "\ud800"] for x in ODD_SEQUENCES]
    if given is odd:
        found = found + ODD_SEQUENCES
    return [*found, [token for tokens in found[:55] for token in tokens], []]


def arrays_of(data):
    """The arrays of numbers of an exported model, without their signs, which may be changed in place in a bytearray."""
    at, found = 24, []
    while at < len(data):
        width, count = data[at] & 15, int.from_bytes(data[at + 8 : at + 16], "little")
        found.append(np.frombuffer(data, f"<u{width}", count, at + 16))
        at += 16 + (count * width + 7) // 8 * 8
    return found


def sound(data):
    """The same bytes with the checksum and the size that they should have."""
    rest = len(data).to_bytes(8, "little") + data[24:]
    return data[:12] + crc32(rest).to_bytes(4, "little") + rest


def compiled(folder):
    """The package of the runtime in Python, imported anew, with its libraries compiled into a folder."""
    left_out = shutil.ignore_patterns(*(f"_{structure}*" for structure in STRUCTURES))
    shutil.copytree(ROOT / "runtime" / "structsvm_runtime", folder / "structsvm_runtime", ignore=left_out)
    return with_libraries(folder, SOURCES)


def counted(folder, runtime, structure, program=COUNTED):
    """The compiled package in another folder, with a structure's library that counts, by default what it allocates."""
    shutil.copytree(Path(runtime.__file__).parent, folder / "structsvm_runtime")
    source = folder / "counted.c"
    source.write_text(program.replace("structsvm_sequences.c", SOURCES[structure].name), encoding="ascii")
    return with_libraries(folder, {structure: source})


def with_libraries(folder, sources):
    """The package in a folder, imported anew, with libraries compiled from these sources."""
    package = folder / "structsvm_runtime"
    for structure, source in sources.items():
        files = [str(source), "-I", str(RUNTIME), "-o", str(package / f"_{structure}.so"), "-lm"]
        subprocess.run([COMPILER, *C_OPTIONS, "-O2", *files], check=True)
    for name in [name for name in sys.modules if name.partition(".")[0] == package.name]:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(package.name)
    finally:
        sys.path.remove(str(folder))
