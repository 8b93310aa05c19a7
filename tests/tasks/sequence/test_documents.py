"""Labels of documents that have the form of spaCy's, without spaCy."""

import sys
from itertools import count
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from structsvm.tasks import SequenceLabeler
from structsvm.tasks.sequence.documents import LabelerComponent

X = [["Ann", "Lee", "left", "."], ["Rome", "is", "old", "."], ["Ann", "Bob", "left", "."]] * 5
Y = [["B-PER", "I-PER", "O", "O"], ["B-LOC", "O", "O", "O"], ["B-PER", "B-PER", "O", "O"]] * 5
OLD = [[label.replace("B-", "I-") for label in row] for row in Y[:2]] + [["I-PER", "B-PER", "O", "O"]]


class Token:
    """A word with attributes, and `_` for extensions."""

    def __init__(self, text):
        self.text, self._ = text, Extensions()


class Extensions(SimpleNamespace):
    def set(self, name, value):
        setattr(self, name, value)


class Span:
    """Words of a document from one to another."""

    def __init__(self, doc, start, end, label=""):
        self.doc, self.start, self.end, self.label_, self._ = doc, start, end, label, Extensions()

    def __len__(self):
        return self.end - self.start

    def __iter__(self):
        return iter(self.doc.tokens[self.start : self.end])


class Doc:
    """Words, and where its sentences begin."""

    def __init__(self, words, starts=None):
        self.tokens, self.starts, self.ents = list(map(Token, words)), starts, []

    def __getitem__(self, _):
        return Span(self, 0, len(self.tokens))

    def has_annotation(self, name):
        return name == "SENT_START" and self.starts is not None

    @property
    def sents(self):
        return [Span(self, a, b) for a, b in zip(self.starts, [*self.starts[1:], len(self.tokens)], strict=True)]

    def set_ents(self, entities):
        self.ents = entities


def fitted(y=Y, **params):
    return SequenceLabeler(**{"C": 1.0, "loss": "log", "random_state": 0, **params}).fit(X, (y * 5)[:15])


@pytest.mark.parametrize("segments", [False, True])
def test_entities_have_the_probabilities_of_predict_spans(segments):
    labeler = fitted(segments=segments)
    doc = LabelerComponent("names", labeler, ["text"], "ents", True)(Doc(X[0] + X[1], [0, 4]))
    assert [(entity.start, entity.end, entity.label_) for entity in doc.ents] == [(0, 2, "PER"), (4, 5, "LOC")]
    spans = [span for own in labeler.predict_spans(X[:2], probabilities=True) for span in own]
    assert [entity._.probability for entity in doc.ents] == [span[3] for span in spans]
    assert LabelerComponent("names", labeler, ["text"], "ents")(Doc(X[1])).ents[0].label_ == "LOC"


@pytest.mark.parametrize("target", ["tag_", "_.kind"])
@pytest.mark.parametrize(
    ("y", "params"),
    [(Y, {}), (Y, {"segments": True}), (OLD, {"segments": True, "constraints": "iob1"})],
    ids=["tokens", "segments", "segments of iob1"],
)
def test_tokens_have_the_probability_of_their_label(target, y, params):
    """Several tags of whole segments are one label to users: B and S are `B-`."""
    labeler = fitted(y, **params)
    docs = list(LabelerComponent("names", labeler, ["text"], target, True).pipe(map(Doc, X[:3]), batch_size=2))
    label_of = (lambda token: token.tag_) if target == "tag_" else (lambda token: token._.kind)
    assert [list(map(label_of, doc.tokens)) for doc in docs] == labeler.predict(X[:3]) == y[:3]
    chances = np.array([[token._.probability for token in doc.tokens] for doc in docs])
    assert chances.min() > 0.5 and chances.max() <= 1.0 + 1e-9
    tables = labeler.predict_marginals(X[:3])
    if params.get("segments"):
        begins = [k for k, tag in enumerate(labeler.model_.labels) if tag in ("B-PER", "S-PER")]
        assert y[2][1] == "B-PER" and chances[2, 1] == pytest.approx(tables[2][1, begins].sum())
    else:
        assert chances == pytest.approx(np.array([table.max(axis=1) for table in tables]))


def test_sizes_of_batches_may_be_an_iterator():
    component, taken = LabelerComponent("names", fitted(), ["text"], "tag_"), []
    stream = (taken.append(k) or Doc(X[k]) for k in range(6))
    found, seen = [], []
    for doc in component.pipe(stream, batch_size=iter([1, np.int64(3), 4.0])):
        found.append([token.tag_ for token in doc.tokens])
        seen.append(len(taken))
    assert found == Y[:6] and seen == [1, 4, 4, 4, 6, 6]
    assert len(list(component.pipe(map(Doc, X[:3]), batch_size=np.int64(2)))) == 3
    assert len(list(component.pipe(map(Doc, X[:3]), batch_size=count(1)))) == 3


@pytest.mark.parametrize("sizes", [0, [1, 1], [2, 0]])
def test_no_document_is_left_out_by_sizes(sizes):
    component = LabelerComponent("names", fitted(), ["text"], "tag_")
    with pytest.raises(ValueError, match="'batch_size' must be at least 1"):
        list(component.pipe(map(Doc, X[:3]), batch_size=sizes))


def registry():
    """A class that registers extensions as spaCy's do: a name that is there is refused."""

    class Kind:
        own = {}

        @classmethod
        def has_extension(cls, name):
            return name in cls.own

        @classmethod
        def set_extension(cls, name, default):
            if name in cls.own:
                raise ValueError(name)
            cls.own[name] = default

    return Kind


def test_the_constructor_registers_extensions(monkeypatch):
    """The classes are those of spaCy, if a program has imported it; a second component changes nothing."""
    spacy, tokens = ModuleType("spacy"), ModuleType("spacy.tokens")
    spacy.tokens, tokens.Span, tokens.Token = tokens, registry(), registry()
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    monkeypatch.setitem(sys.modules, "spacy.tokens", tokens)
    LabelerComponent("names", None, ["text"], "ents")
    assert tokens.Span.own == tokens.Token.own == {}
    for _ in range(2):
        LabelerComponent("names", None, ["text"], "_.kind", True)
    assert tokens.Span.own == {"probability": None}
    assert tokens.Token.own == {"probability": None, "kind": None}
