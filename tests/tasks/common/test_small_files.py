"""Model files hold what prediction needs, and the training state where that is asked for; of all estimators."""

import io
import warnings

import numpy as np
import pytest
from cases import CASES

import structsvm
from structsvm import AdviceWarning, tasks
from structsvm.model_file import read_model

pytestmark = pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")  # passes are few
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
# Their kind of state is a part of what predicts, or is not stored.
STATELESS = ("ospas", "perceptron of meanings")


def states(path):
    """Names of the arrays of states in a file, those of a sum's other part too."""
    return [name for name in read_model(path).arrays if "state." in name]


@each
def test_a_file_has_a_training_state_if_that_is_asked_for(case, tmp_path):
    model = case.fit(**case.passes(2))
    said = case.predicted(model)
    model.save(tmp_path / "small")
    model.save(tmp_path / "large", training_state=True)
    is_kept = model.model_.needs_state
    assert bool(states(tmp_path / "small")) == is_kept
    assert states(tmp_path / "large") or any(case is CASES[name] for name in STATELESS)
    small = structsvm.load(tmp_path / "small", **case.load)
    assert case.predicted(small) == said
    assert small.result_.certificate() == model.result_.certificate()
    model.set_params(warm_start=True).save(tmp_path / "warm")
    assert states(tmp_path / "warm") == states(tmp_path / "large")
    model.save(tmp_path / "small", training_state=False)
    assert bool(states(tmp_path / "small")) == is_kept
    assert model.model_.state is not None or not states(tmp_path / "large")  # the model keeps its own


@each
def test_a_model_without_its_state_says_so_where_it_would_resume(case, tmp_path):
    model = case.fit(**case.passes(2))
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m", **case.load).set_params(warm_start=True)
    has_state = loaded.model_.state is not None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        case.train(loaded)
    found = [one for one in said if one.category is AdviceWarning and "training_state=True" in str(one.message)]
    assert len(found) == (not has_state and case is not CASES["ospas"])  # it resumes from its taggers
    assert len(case.predicted(loaded))


def test_a_sum_of_losses_without_its_states_goes_on_as_one_model(tmp_path):
    X, y = structsvm.datasets.make_sequences(60, random_state=0)
    model = tasks.SequenceLabeler(max_iter=3, random_state=0).fit(X, y)
    assert len(model.results_) == 2
    model.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.results_.keys() == model.results_.keys()
    with pytest.warns(AdviceWarning, match="save.path, training_state=True"):
        loaded.set_params(warm_start=True).fit(X, y)
    assert len(loaded.results_) == 1
    assert loaded.score(X, y) > 0.9
    before = structsvm.load(tmp_path / "m").emission_
    assert np.abs(loaded.emission_ - before).max() < np.abs(before).max()


class Wire(io.RawIOBase):
    """A stream without `seek`, which takes and gives few bytes at once, as a socket may."""

    def __init__(self):
        self.contents = bytearray()

    def writable(self):
        return True

    def readable(self):
        return True

    def write(self, data):
        self.contents += data[:999]
        return len(data[:999])

    def readinto(self, room):
        n = min(len(room), 999, len(self.contents))
        room[:n] = self.contents[:n]
        del self.contents[:n]
        return n


def test_a_stream_that_takes_no_bytes_is_named():
    class Full(Wire):
        def write(self, data):
            return None if self.contents else super().write(data)

    model = tasks.SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]])
    with pytest.raises(BlockingIOError, match="takes no more bytes: open it for blocking"):
        model.save(Full())


@pytest.mark.parametrize("n", [0, -1, True, False, 10**9])
def test_a_stream_that_says_an_impossible_number_of_bytes_is_refused(n):
    class Wrong(Wire):
        def write(self, data):
            assert not self.contents, "it was asked again"
            self.contents += data
            return n

    model = tasks.SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]])
    with pytest.raises(OSError, match=rf"<stream>: write returned {n} for \d+ bytes"):
        model.save(Wrong())


@each
def test_files_are_bytes_and_streams_too(case, tmp_path):
    model = case.fit(**case.passes(1))
    said = case.predicted(model)
    model.save(tmp_path / "m")
    stream = io.BytesIO()
    model.save(stream)
    contents = stream.getvalue()
    assert contents == (tmp_path / "m").read_bytes()
    stream.seek(0)
    wire = Wire()
    model.save(wire)
    assert wire.contents == contents
    with open(tmp_path / "m", "rb") as file:
        for origin in (contents, bytearray(contents), memoryview(contents), stream, file, wire, str(tmp_path / "m")):
            assert case.predicted(structsvm.load(origin, **case.load)) == said
    assert case.predicted(structsvm.load(contents, mmap=True, **case.load)) == said


def test_damaged_bytes_and_files_of_text_are_refused(tmp_path):
    model = tasks.SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]])
    stream = io.BytesIO()
    model.save(stream)
    contents = stream.getvalue()
    for damaged in (contents[:-1], contents[:100], b"", contents[:-1] + bytes([contents[-1] ^ 1])):
        with pytest.raises(structsvm.ModelFileError, match=f"^<{len(damaged)} bytes>: is "):
            structsvm.load(damaged)
    with pytest.raises(TypeError, match="is open for text: open it with mode 'wb'"):
        model.save(io.StringIO())
    with pytest.raises(TypeError, match="is open for text: open it with mode 'rb'"):
        structsvm.load(io.StringIO("text"))
