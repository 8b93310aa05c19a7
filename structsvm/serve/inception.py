"""INCEpTION's protocol of external recommenders: predict and train on documents in XMI.

Requests have ``metadata`` (layer, feature), ``typeSystem`` and a ``document``, or for training ``documents``. Predicted
annotations are added to the document, marked as predicted. Models of sequences label spans of the document's words,
sentence by sentence; classifiers of texts label its sentences.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from structsvm.features.text.words import word_spans
from structsvm.serve.models import Marked, Span, TextModel
from structsvm.serve.values import Object, a_list, a_text, an_element, an_object
from structsvm.serve.xmi import Document, checked_feature

PREDICTED = "inception_internal_predicted"


def predict(model: TextModel, request: Object) -> Object:
    """The answer of ``POST /inception/predict``: the document with predictions."""
    layer, feature = _target(request)
    document = Document(a_text(an_object(request.get("document"), "document").get("xmi"), "document.xmi"))
    score = f"{feature}_score"
    has_scores = score in features_of(a_text(request.get("typeSystem", ""), "typeSystem"), layer)
    added = []
    for span in _spans(model, document):
        more = {score: str(span.confidence)} if has_scores and span.confidence is not None else {}
        added.append((span, {PREDICTED: "true", **more}))
    document.add(layer, feature, added)
    return {"document": document.to_xmi()}


def features_of(types: str, layer: str) -> set[str]:
    """The features of a layer in a type system, with those of the types above it; none in an empty text."""
    found: set[str] = set()
    above: dict[str, str] = {}
    features: dict[str, set[str]] = {}
    for own in an_element(types, "typeSystem").iterfind(".//{*}typeDescription") if types else ():
        name = _text_of(own, "name")
        above[name] = _text_of(own, "supertypeName")
        features[name] = {_text_of(one, "name") for one in own.iterfind(".//{*}featureDescription")}
    while layer in above:
        found |= features[layer]
        layer = above.pop(layer)
    return found


def _text_of(element: ET.Element, name: str) -> str:
    return (element.findtext(f"{{*}}{name}") or "").strip()


def _spans(model: TextModel, document: Document) -> list[Span]:
    words, found = document.words, []
    for start, end in document.sentences:
        text = document.text[start:end]
        if not model.is_sequence:
            (whole,) = model.predict([text])
            found.append(Span(start, end, str(whole.label), whole.confidence))
            continue
        own = model.predict_words(text, _words_in(words, start, end, text)).spans
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

    In a document that is being annotated, a sentence without one may just not have been looked at.
    """
    layer, feature = _target(request)
    marked: list[Marked] = []
    for value in a_list(request.get("documents"), "documents"):
        document = Document(a_text(an_object(value, "documents").get("xmi"), "documents.xmi"))
        marked += _marked(document, document.spans(layer, feature))
    if model.is_sequence:
        model.teach_spans(marked)
    else:
        model.teach_labels([(text, spans[-1].label) for text, spans, _ in marked])


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


def _target(request: Object) -> tuple[str, str]:
    """Layer and feature of a request."""
    metadata = an_object(request.get("metadata"), "metadata")
    feature = checked_feature(a_text(metadata.get("feature"), "metadata.feature"))
    if feature == PREDICTED:
        raise ValueError(f"feature: {PREDICTED} marks predictions, and is no label")
    return a_text(metadata.get("layer"), "metadata.layer"), feature
