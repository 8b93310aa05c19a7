"""Segments of labels that have no tags: each run of one label is one; labels that look like tags are refused."""

import pytest

import structsvm
from structsvm.metrics._schemes import Runs, name_no_tags
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.tasks import SequenceLabeler

X = [
    ["12", "main", "street", "springfield"],
    ["7", "oak", "street", "lake", "city"],
    ["the", "12", "elm", "street"],
] * 4
Y = [["nr", "road", "road", "town"], ["nr", "road", "road", "town", "town"], ["O", "nr", "road", "road"]] * 4
SPANS = [[(0, 1, "nr"), (1, 3, "road"), (3, 4, "town")], [(0, 1, "nr"), (1, 3, "road"), (3, 5, "town")]]


def labeler(**params):
    return SequenceLabeler(segments=True, C=1.0, random_state=0, **params)


@pytest.mark.parametrize("loss", ["hamming", "log"])
def test_runs_of_a_label_are_segments(loss, tmp_path):
    model = labeler(loss=loss).fit(X, Y)
    assert set(model.classes_) == {"O", *(f"{tag}-{kind}" for tag in "BIES" for kind in ("nr", "road", "town"))}
    model.save(tmp_path / "m")
    for one in (model, structsvm.load(tmp_path / "m")):
        assert one.predict(X[:3]) == Y[:3]
        assert one.predict_spans(X[:2]) == SPANS
        assert one.score(X, Y) == 1.0
        assert [span[:3] for span in one.predict_spans(X[:2], probabilities=True)[0]] == SPANS[0]
    assert model.predict(X[:1], allowed=[["town", None, None, "road"]])[0][0] == "town"
    file = read_model(tmp_path / "m")
    assert file.meta["segments"]["form"] == "runs"
    write_model(
        tmp_path / "m", file.kind, file.meta | {"segments": file.meta["segments"] | {"form": "run"}}, file.arrays
    )
    with pytest.raises(ModelFileError, match=r"'segments\.form' must be one of"):
        structsvm.load(tmp_path / "m")


def test_streams_and_labels_known_in_part():
    stream = labeler().partial_fit(X[:6], Y[:6], classes=["O", "nr", "road", "town"]).partial_fit(X[6:], Y[6:])
    assert stream.predict_spans(X[:2]) == SPANS
    partly = [[None, *labels[1:]] for labels in Y[:6]] + Y[6:]
    assert labeler(loss="log").fit(X, partly).predict_spans(X[:2]) == SPANS


@pytest.mark.parametrize(
    "labels",
    [
        ["B-nr", "road", "road", "town"],  # BIO with a slip
        ["I-95", "road", "road", "town"],
        ["B", "road", "road", "town"],
        ["nr-S", "road", "road", "town"],
        [1, "road", "road", "town"],
    ],
)
def test_labels_that_look_like_tags_are_no_runs(labels):
    with pytest.raises(
        (ValueError, TypeError),
        match=r"sequence \d, token \d: segments need labels of a scheme, labels of which none looks like a tag",
    ):
        labeler().fit(X, [labels, *Y[1:]])


def test_runs_as_a_scheme():
    scheme = Runs()
    labels = ["a", "a", "O", "b", "a"]
    assert scheme.chunks(labels) == [(0, 2, "a"), (3, 4, "b"), (4, 5, "a")]
    assert scheme.labels(scheme.chunks(labels), 5) == labels
    assert str(scheme) == "runs"
    assert not name_no_tags(["a", "B-a"])
    assert name_no_tags(["a", "O", "Bob"])
    assert not name_no_tags([1])
