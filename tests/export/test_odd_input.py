"""Odd input to the runtime in C: what Python labels it labels alike, and all else is refused by name."""

import subprocess
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_float, c_size_t, c_uint32, c_void_p
from pathlib import Path

import document_models
import numpy as np
import parser_models
import pytest
import runtime_models
from runtime_models import COMPILER, RUNTIME, SOURCES, bytes_of, fitted

from structsvm.export.binary import RuntimeFile
from structsvm.tasks import SequenceLabeler

pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
INPUT, UTF8, SIZE = -3, -4, -6


class Text(Structure):
    _fields_ = [("data", c_char_p), ("size", c_uint32), ("value", c_float)]


class Called:
    """A model that is called as a program in C calls it."""

    def __init__(self, runtime, structure, data):
        self.structure, self.library = structure, runtime.native.library(structure)
        self.data = np.frombuffer(data, np.uint8).copy()
        self.pointer = c_void_p()
        status = self.library.structsvm_open(c_void_p(self.data.ctypes.data), c_size_t(len(data)), byref(self.pointer))
        assert status == 0

    def predict(self, texts):
        given, out = (Text * len(texts))(*((text, len(text), 1.0) for text in texts)), (c_uint32 * (2 * len(texts)))()
        return self.library.structsvm_predict(self.pointer, given, None, len(texts) // self.n_columns, out)

    def kbest(self, texts, k):
        given = (Text * len(texts))(*((text, len(text), 1.0) for text in texts))
        out, scores = (c_uint32 * (2 * len(texts) * 8))(), (c_double * 8)()
        return self.library.structsvm_kbest(
            self.pointer, given, None, len(texts) // self.n_columns, c_uint32(k), out, scores
        )

    @property
    def n_columns(self):
        return max(POINTER(c_uint32).from_buffer(self.pointer)[1], 1)

    def close(self):
        self.library.structsvm_close(self.pointer)


MODELS = {
    "sequences": lambda: bytes_of(fitted("words")),
    "segments": lambda: bytes_of(fitted("segments")),
    "documents": lambda: bytes_of(document_models.fitted("tfidf")),
    "trees": lambda: bytes_of(parser_models.fitted("two stages")),
}


@pytest.fixture(params=MODELS)
def called(request, runtime):
    model = Called(runtime, request.param, MODELS[request.param]())
    yield model
    model.close()


@pytest.mark.parametrize("text", [b"\xff", b"a\xc3", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xe2\x28\xa1", b"\xed\xa0"])
def test_bytes_that_are_not_utf_8_are_refused(called, text):
    assert called.predict([text] * called.n_columns) == UTF8
    assert called.predict([b"a"] * called.n_columns) == 0  # the model is as it was


def test_a_surrogate_and_a_zero_are_letters(called):
    assert called.predict([b"\xed\xa0\x80", *[b"a\0b"] * 4][: called.n_columns]) == 0


def test_numbers_of_best_outputs(called):
    texts = [b"a"] * called.n_columns
    assert called.kbest(texts, 0) == INPUT
    assert called.kbest(texts, 1) == 1
    # Each document is labelled by itself, and one at a time has k best labels.
    assert called.kbest(texts * 40, (1 << 32) - 1) == (INPUT if called.structure == "documents" else SIZE)


def test_zeros_within_words_are_letters_as_in_python(runtime):
    X, y = [["a\0b", "a", "\0"], ["\0", "a\0c"]] * 4, [["x", "y", "z"], ["z", "x"]] * 4
    model = SequenceLabeler(C=1.0, random_state=0).fit(X, y)
    tagger = runtime.load(bytes_of(model))
    for x in [*X[:2], ["a\0", "a", "a\0b\0", "\0\0"]]:
        assert tagger.kbest(x, 3) == [(list(labels), score) for labels, score in model.predict_kbest([x], 3)[0]]


def test_no_labels_are_probable_where_constraints_leave_none(runtime):
    X, y = [["a", "b"]] * 3, [["x", "y"]] * 3
    model = SequenceLabeler(C=0.1, loss="log", random_state=0, constraints="x y").fit(X, y)
    tagger = runtime.load(bytes_of(model))
    np.testing.assert_allclose(tagger.probability(["a", "b"]), np.eye(2), atol=1e-6)
    with pytest.raises(ValueError, match="constraints leave no labelling"):
        tagger.probability(["a", "b", "a"])


@pytest.mark.parametrize("name", ["words", "records", "order 2", "segments"])
def test_a_sequence_of_a_hundred_thousand_tokens(runtime, name):
    model = fitted(name)
    x = [token for tokens in runtime_models.sequences(name)[:60] for token in tokens if token]
    x = (x * (100_000 // len(x) + 1))[:100_000]
    tagger = runtime.load(bytes_of(model))
    assert tagger.predict(x) == model.predict([x])[0]
    assert tagger.predict([]) == []


def test_numbers_that_a_file_does_not_hold_are_refused():
    file = RuntimeFile()
    for dtype, most in (("u1", 255), ("<u2", 65_535), ("<i4", 2**31 - 1), ("<u4", 2**32 - 1)):
        file.add(dtype, np.array([most], dtype=np.int64))
        with pytest.raises(ValueError, match=r"a model with numbers beyond those of .* cannot be exported"):
            file.add(dtype, np.array([most + 1], dtype=np.int64))


# ---- two threads over one model -----------------------------------------------------------------

THREADS = """
#include SOURCE
#include <pthread.h>
#include <stdio.h>

static uint8_t *bytes;
static size_t size;

static void *work(void *labels) {
    structsvm *tagger;
    structsvm_text texts[40];
    uint32_t out[16] = {0};
    for (int i = 0; i < 40; i++) texts[i] = (structsvm_text){i % 3 ? "w1" : "dog", i % 3 ? 2 : 3, 1.0f};
    if (structsvm_open(bytes, size, &tagger) != STRUCTSVM_OK) return NULL;
    for (int run = 0; run < 50; run++) {
        if (structsvm_predict(tagger, texts, NULL, 8, out) != STRUCTSVM_OK) return NULL;
        memcpy(labels, out, sizeof out);
    }
    structsvm_close(tagger);
    return labels;
}

int main(int argc, char **argv) {
    static uint32_t labels[2][16];
    pthread_t threads[2];
    void *found[2];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL || (bytes = malloc(1 << 24)) == NULL) return 2;
    size = fread(bytes, 1, 1 << 24, file);
    for (int i = 0; i < 2; i++) pthread_create(threads + i, NULL, work, labels[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], found + i);
    return found[0] == NULL || found[1] == NULL || memcmp(labels[0], labels[1], sizeof labels[0]) != 0;
}
"""


@pytest.mark.parametrize("structure", MODELS)
def test_two_threads_share_a_models_bytes(structure, tmp_path):
    """Each with a tagger of its own, under ThreadSanitizer: what one writes the other does not read."""
    (tmp_path / "threads.c").write_text(THREADS)
    (tmp_path / "model.bin").write_bytes(MODELS[structure]())
    source, program = f'-DSOURCE="{SOURCES[structure]}"', str(tmp_path / "threads")
    options = ["-std=gnu99", "-O1", "-g", "-fsanitize=thread", "-pthread", "-ffp-contract=off", source]
    command = [COMPILER, *options, "-I", str(RUNTIME), str(tmp_path / "threads.c"), "-lm", "-o", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "sanitize" in done.stderr:
        pytest.skip("the compiler has no ThreadSanitizer")
    assert done.returncode == 0, done.stderr
    # Where addresses are drawn from more bits than the sanitizer knows, programs begin without that.
    prefix = ["setarch", "-R"] if Path("/usr/bin/setarch").exists() else []
    done = subprocess.run([*prefix, program, str(tmp_path / "model.bin")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
