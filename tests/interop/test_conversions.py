"""Models of one program as those of another: the same labels, scores and marginals."""

from dataclasses import replace

import numpy as np
import pytest

import structsvm
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns
from structsvm.interop import read_crfpp, read_crfsuite, read_wapiti, write_crfpp, write_crfsuite, write_wapiti
from structsvm.interop.kinds import write_chain
from structsvm.tasks import SequenceLabeler

TEMPLATES = "U00:%x[-2,0]/%x[-1,1]\nU:%x[0,0]\nU:%x[1,0]\nU9\nB01:%x[0,1]/%x[3,0]\nB\n"
PATTERNS = "u:1=%x[-2,0]/%x[-1,1]\nu:%x[0,0]\n*:p=%x[1,1]\n*\n"
WAPITI, CRFPP, CRFSUITE = (read_wapiti, write_wapiti), (read_crfpp, write_crfpp), (read_crfsuite, write_crfsuite)


@pytest.fixture(scope="module")
def data():
    X, y = make_sequences(60, random_state=0)
    X = [[(word, "_B-1/") if word[-1] == "7" else (word, tag) for word, tag in x] for x in X]
    return X, y, X[:30]


def trained(data, templates):
    return SequenceLabeler(C=1.0, templates=templates, random_state=0).fit(Columns.from_sequences(data[0]), data[1])


def alike(one, other, X, its=None):
    its = X if its is None else its
    assert one.predict(X) == other.predict(its)
    for a, b in zip(one.predict_marginals(X), other.predict_marginals(its), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert one.log_partition(X[0]) == pytest.approx(other.log_partition(its[0]))


@pytest.mark.parametrize(
    ("templates", "ours", "its"), [(TEMPLATES, CRFPP, WAPITI), (PATTERNS, WAPITI, CRFPP)], ids=["to wapiti", "to crf++"]
)
def test_templates_and_patterns(data, tmp_path, templates, ours, its):
    ours[1](trained(data, templates), tmp_path / "one")
    one = ours[0](tmp_path / "one")
    its[1](one, tmp_path / "other")
    other = its[0](tmp_path / "other")
    alike(one, other, data[2])
    ours[1](other, tmp_path / "back")
    alike(one, ours[0](tmp_path / "back"), data[2])


def test_numbers_of_templates_may_begin_with_zeros(data, tmp_path):
    """As CRF++ reads them; Wapiti takes those for octal."""
    write_crfpp(trained(data, TEMPLATES), tmp_path / "one")
    one = read_crfpp((tmp_path / "one").read_bytes().replace(b"U00:%x[-2,0]", b"U00:%x[-02,00]"))
    write_wapiti(one, tmp_path / "other")
    other = read_wapiti(tmp_path / "other")
    assert other.patterns[0].source == "u00:%x[-2,0]/%x[-1,1]"
    alike(one, other, data[2])


def test_observations_as_attributes(data, tmp_path):
    write_wapiti(trained(data, "u:w=%x[0,0]\nu:%x[-1,1]\nb\n"), tmp_path / "one")
    one = read_wapiti(tmp_path / "one")
    write_crfsuite(one, tmp_path / "other")
    alike(one, read_crfsuite(tmp_path / "other"), data[2], [one.observations(x) for x in data[2]])


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
def test_attributes_as_observations(data, tmp_path):
    X, y, X_test = data
    attributes = [[[f"w={word}", f"t={tag}"] for word, tag in x] for x in X]
    for x in attributes:
        x[0].append("__BOS__")
    write_crfsuite(SequenceLabeler(C=1.0, random_state=0).fit(attributes, y), tmp_path / "one")
    one = read_crfsuite(tmp_path / "one")
    write_wapiti(one, tmp_path / "other")
    observed = [[["b", *("u" + name for name in token)] for token in x] for x in attributes]
    alike(one, read_wapiti(tmp_path / "other"), attributes[: len(X_test)], observed[: len(X_test)])


@pytest.mark.filterwarnings("ignore::structsvm.AdviceWarning")
@pytest.mark.parametrize("ends", [False, True])
def test_attributes_as_a_model_of_ours(data, tmp_path, ends):
    X, y, _ = data
    X = [[[f"w={word}", f"t={tag}"] for word, tag in x] for x in X]
    write_crfsuite(SequenceLabeler(C=1.0, random_state=0).fit(X, y), tmp_path / "one")
    one = read_crfsuite(tmp_path / "one")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(one.labels))  # labels in no order
    one = replace(
        one,
        labels=[one.labels[k] for k in order],
        states=one.states._replace(targets=np.argsort(order)[one.states.targets].astype(np.int32)),
        transitions=one.transitions[np.ix_(order, order)],
        start=rng.normal(size=len(order)) if ends else None,
        end=rng.normal(size=len(order)) if ends else None,
        cost_factor=1.5 if ends else 1.0,
    )
    write_chain(one, tmp_path / "m.model")
    labeler = structsvm.load(tmp_path / "m.model")
    assert labeler.predict(X) == one.predict(X)
    assert labeler.classes_.tolist() == sorted(one.labels)
    columns = [one.labels.index(label) for label in labeler.classes_]
    for a, b in zip(labeler.predict_marginals(X), one.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a, b[:, columns], atol=1e-5)
    labeler.partial_fit(X, y)  # one pass
    assert labeler.score(X, y) > 0.8


def test_what_is_not_taken_over(data, tmp_path):
    labeler = trained(data, TEMPLATES)
    write_crfpp(labeler, tmp_path / "c")
    with pytest.raises(ValueError, match="train again"):
        write_chain(read_crfpp(tmp_path / "c"), tmp_path / "x.model")
    with pytest.raises(ValueError, match="ours already"):
        write_chain(labeler, tmp_path / "x", "own")
    with pytest.raises(ValueError, match="must be one of wapiti"):
        write_chain(labeler, tmp_path / "x")
    assert not (tmp_path / "x").exists() and not (tmp_path / "x.model").exists()


def test_what_has_no_counterpart(data, tmp_path):
    write_wapiti(trained(data, 'u:%X[0,0]\nb:%t[0,0,"a"]\nb\n'), tmp_path / "w")
    model = read_wapiti(tmp_path / "w")
    with pytest.raises(ValueError, match=r"CRF\+\+ has no counterpart of the pattern 'u:%X\[0,0\]'"):
        write_crfpp(model, tmp_path / "x")
    with pytest.raises(ValueError, match="CRFsuite has no counterpart of weights of pairs"):
        write_crfsuite(model, tmp_path / "x")
    write_crfpp(trained(data, "U:%x[-5,0]\nB\n"), tmp_path / "c")
    with pytest.raises(ValueError, match="further than 4"):
        write_wapiti(read_crfpp(tmp_path / "c"), tmp_path / "x")
    text = b"#mdl#0#1\n#rdr#1/0/1\n9:u:%x[0,0],\n#qrk#2\n1:A,\n1:B,\n#qrk#1\n4:uu:a,\n1=0x1p+0\n"
    (tmp_path / "m").write_bytes(text)
    for write in (write_crfpp, write_crfsuite):
        with pytest.raises(ValueError, match="maximum entropy"):
            write(read_wapiti(tmp_path / "m"), tmp_path / "x")
    write_crfsuite(SequenceLabeler(C=1.0).fit([[["__BOS__"], ["b"]]], [["A", "B"]]), tmp_path / "s")
    with pytest.raises(ValueError, match="no counterpart of attributes"):
        write_crfpp(read_crfsuite(tmp_path / "s"), tmp_path / "x")
    assert not (tmp_path / "x").exists()
