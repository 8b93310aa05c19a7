"""INCEpTION's protocol of external recommenders: predict and train on documents in XMI.

Requests have ``metadata`` (layer, feature), ``typeSystem`` and a ``document``, or for training ``documents``. Predicted
annotations are added to the document, marked as predicted. Models of sequences label spans of the document's words,
sentence by sentence; classifiers of texts label its sentences.
"""

from __future__ import annotations

import reprlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree as ET

from structsvm.features.text.words import word_spans
from structsvm.serve.models import Marked, Span, TextModel
from structsvm.serve.values import Object, a_list, a_text, an_element, an_object, an_optional_text
from structsvm.serve.xmi import Document, checked_feature

PREDICTED = "inception_internal_predicted"
# Anchoring modes, as INCEpTION names them; its others are "tokens" and "characters".
SENTENCES, SINGLE_WORDS = "sentences", "singleToken"


def predict(model: TextModel, request: Object) -> Object:
    """The answer of ``POST /inception/predict``: the document with predictions."""
    layer, feature, anchoring = _target(request)
    _check_anchoring(model, anchoring)
    document = Document(a_text(an_object(request.get("document"), "document").get("xmi"), "document.xmi"))
    score = f"{feature}_score"
    has_scores = score in features_of(_types_in(request), layer)
    added = []
    for span in _spans(model, document, in_words=anchoring == SINGLE_WORDS):
        more = {score: str(span.confidence)} if has_scores and span.confidence is not None else {}
        added.append((span, {PREDICTED: "true", **more}))
    document.add(layer, feature, added)
    return {"document": document.to_xmi()}


class Type(NamedTuple):
    """A type of annotations: the type above it, and its own features."""

    above: str
    features: set[str]


def types_of(text: str) -> dict[str, Type]:
    """The types of a type system by their names; none in an empty text."""
    return {
        _text_of(own, "name"): Type(
            _text_of(own, "supertypeName"), {_text_of(one, "name") for one in own.iterfind(".//{*}featureDescription")}
        )
        for own in (an_element(text, "typeSystem").iterfind(".//{*}typeDescription") if text else ())
    }


def _types_in(request: Object) -> dict[str, Type]:
    return types_of(an_optional_text(request.get("typeSystem"), "typeSystem"))


def features_of(types: Mapping[str, Type], layer: str) -> set[str]:
    """The features of a layer, with those of the types above it; types above each other end."""
    found: dict[str, set[str]] = {}
    while layer in types and layer not in found:
        found[layer] = types[layer].features
        layer = types[layer].above
    return set().union(*found.values())


def layers_of(types: Mapping[str, Type], layer: str) -> list[str]:
    """A layer, and the types below it, whose annotations are the layer's too."""
    below: dict[str, list[str]] = {}
    for name, own in types.items():
        below.setdefault(own.above, []).append(name)
    found, waiting = {layer: None}, [layer]
    while waiting:
        new = [name for name in below.get(waiting.pop(), ()) if name not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _text_of(element: ET.Element, name: str) -> str:
    return (element.findtext(f"{{*}}{name}") or "").strip()


def _check_anchoring(model: TextModel, anchoring: str) -> None:
    """Raise ValueError for a layer whose annotations the model cannot give: INCEpTION drops others without a word."""
    labels = "spans of words" if model.is_sequence else "sentences"
    if anchoring == (SENTENCES if model.is_sequence else SINGLE_WORDS):
        raise ValueError(f"metadata.anchoringMode: the layer has {anchoring}, and the model labels {labels}")


def _spans(model: TextModel, document: Document, *, in_words: bool) -> list[Span]:
    """The spans of a document's sentences; each word of one alone, if so asked."""
    words, found = document.words, []
    predict = model.predict_each_word if in_words else model.predict_words
    for start, end in document.sentences:
        text = document.text[start:end]
        if not text.strip():
            continue
        if not model.is_sequence:
            (whole,) = model.predict([text])
            found.append(Span(start, end, str(whole.label), whole.confidence))
            continue
        own = predict(text, _words_in(words, start, end, text)).spans
        found += [Span(start + span.start, start + span.end, span.label, span.confidence) for span in own]
    return found


def _words_in(words: list[tuple[int, int]], start: int, end: int, text: str) -> list[tuple[int, int]]:
    """The words of a sentence, among sorted ones, from its start; read off its text in a document without words."""
    if not words:
        return word_spans(text)
    own = words[bisect_left(words, (start, start)) : bisect_left(words, (end, end))]
    return [(a - start, b - start) for a, b in own if a < b <= end]


def train(model: TextModel, request: Object) -> None:
    """Learn the documents of ``POST /inception/train``, all or none: each sentence that has an annotation.

    In a document that is being annotated, a sentence without one may just not have been looked at. INCEpTION sends
    all documents each time; only what differs from what a user's documents had the last time is learnt.
    """
    layer, feature, anchoring = _target(request)
    _check_anchoring(model, anchoring)
    layers = layers_of(_types_in(request), layer)
    project = reprlib.repr(an_object(request.get("metadata"), "metadata").get("projectId"))
    marked: list[Marked] = []
    senders: list[str] = []
    for value in a_list(request.get("documents"), "documents"):
        own = an_object(value, "documents")
        document = Document(a_text(own.get("xmi"), "documents.xmi"))
        found = [span for name in layers for span in document.spans(name, feature, without=PREDICTED)]
        marked += _marked(document, found)
        # Two users who disagree do not undo each other's answers at each request.
        sender = repr((project, layer, feature, an_optional_text(own.get("userId"), "documents.userId")))
        senders += [sender] * (len(marked) - len(senders))
    if model.is_sequence:
        model.teach_spans(marked, senders=senders)
    else:
        model.teach_labels([(text, _only_label(text, spans)) for text, spans, _ in marked], senders=senders)


def _only_label(text: str, spans: Sequence[Span]) -> str:
    """The label of a sentence. Raises ValueError for several."""
    label, *others = sorted({span.label for span in spans})
    if others:
        raise ValueError(f"{text!r:.60}: labels {label}, {', '.join(others)}, and the model gives one")
    return label


def _marked(document: Document, spans: list[Span]) -> Iterator[Marked]:
    """The sentences that have spans, counted from their starts."""
    words = document.words
    order = sorted(range(len(spans)), key=lambda k: spans[k].start)
    starts = [spans[k].start for k in order]
    for start, end in document.sentences:
        text = document.text[start:end]
        within = [spans[k] for k in sorted(order[bisect_left(starts, start) : bisect_left(starts, end)])]
        own = [Span(s.start - start, s.end - start, s.label) for s in within if s.start < s.end <= end]
        if own:
            yield Marked(text, own, _words_in(words, start, end, text))


def _target(request: Object) -> tuple[str, str, str]:
    """Layer and feature of a request, and what the layer's annotations are: one of INCEpTION's anchoring modes."""
    metadata = an_object(request.get("metadata"), "metadata")
    feature = checked_feature(a_text(metadata.get("feature"), "metadata.feature"))
    if feature == PREDICTED:
        raise ValueError(f"feature: {PREDICTED} marks predictions, and is no label")
    anchoring = an_optional_text(metadata.get("anchoringMode"), "metadata.anchoringMode")
    return a_text(metadata.get("layer"), "metadata.layer"), feature, anchoring
