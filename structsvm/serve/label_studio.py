"""Label Studio's protocol of machine-learning backends: health, setup, predict, webhook, train.

Requests and answers are those that label-studio 1.x sends and reads (its `ml/api_connector`). A project's configuration
says where its text and its labels are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from structsvm.features.text.words import word_spans
from structsvm.serve.models import Learnt, Marked, Prediction, Span, TextModel
from structsvm.serve.values import MAX_TEXTS, Object, a_list, a_number, a_text, an_element, an_object, utf16_offsets

# The control tags, and the key of their values, by whether the model has spans.
CONTROLS = {True: ("Labels", "labels"), False: ("Choices", "choices")}
CREATED = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED")


class Config(NamedTuple):
    """The parts of a labelling configuration that the model serves.

    Attributes
    ----------
    control : str
        The name of the tag with the labels.
    source : str
        The name of the text tag.
    field : str
        The key of a task's data that has the text.
    labels : frozenset of str
    """

    control: str
    source: str
    field: str
    labels: frozenset[str]


def config_of(text: str, *, is_sequence: bool) -> Config:
    """Read a labelling configuration.

    Raises
    ------
    ValueError
        Without a text, without a tag for the model's labels, or where the task has the text's address alone.
    """
    root, (tag, _) = an_element(text, "label_config"), CONTROLS[is_sequence]
    texts = {own.get("name"): own for own in root.iter("Text")}
    fault = f"has no <{tag}> of a <Text>, which this model labels"
    for control in root.iter(tag):
        source = control.get("toName")
        name, shown = control.get("name"), texts.get(source)
        field = "" if shown is None else shown.get("value", "")
        if name and source and shown is not None and field.startswith("$"):
            if shown.get("valueType") == "url":
                fault = f"{field} is the address of a text (valueType), which is not fetched"
                continue
            values = (own.get("alias") or own.get("value") for own in control)
            return Config(name, source, field[1:], frozenset(value for value in values if value))
    raise ValueError(f"label_config: {fault}")


def health(model: TextModel) -> Object:
    """The answer of ``GET /health``."""
    return {"status": "UP", "model_class": type(model.estimator).__name__}


def setup(model: TextModel, request: Object) -> Object:
    """The answer of ``POST /setup``. Raises ValueError for a project that the model cannot label."""
    schema = request.get("schema")
    if schema:
        config_of(a_text(schema, "schema"), is_sequence=model.is_sequence)
    return {"model_version": model.version}


def predict(model: TextModel, request: Object) -> Object:
    """The answer of ``POST /predict``: one prediction per task."""
    config = config_of(a_text(request.get("label_config"), "label_config"), is_sequence=model.is_sequence)
    tasks = [an_object(task, "tasks") for task in a_list(request.get("tasks"), "tasks", most=MAX_TEXTS)]
    texts = [_text_of(task, config) for task in tasks]
    version, found = model.predict_as(texts)
    return {"results": [_result(own, config, version) for own in found], "model_version": version}


def _text_of(task: Object, config: Config) -> str:
    return a_text(an_object(task.get("data"), "data").get(config.field), f"data.{config.field}")


def _result(prediction: Prediction, config: Config, version: str) -> Object:
    """A prediction as Label Studio has them; labels that its project does not have are left out."""
    names = {"from_name": config.control, "to_name": config.source}
    found: list[Object] = []
    if prediction.label is not None and prediction.label in config.labels:
        value: Object = {"choices": [prediction.label]}
        found.append({**names, "type": "choices", "value": value, "score": prediction.confidence})
    for k, span in enumerate(span for span in prediction.spans if span.label in config.labels):
        text = prediction.text[span.start : span.end]
        value = {"start": span.start, "end": span.end, "text": text, "labels": [span.label]}
        found.append({**names, "id": f"span-{k}", "type": "labels", "value": value, "score": span.confidence})
    return {"result": found, "score": prediction.confidence, "model_version": version}


def webhook(model: TextModel, request: Object) -> Object:
    """The answer of ``POST /webhook``: an annotation that was made or changed is learnt, other events are not."""
    if request.get("action") not in CREATED or model.learns_to is None:
        return {"status": "ok", "learnt": 0, "model_version": model.version}
    project = an_object(request.get("project"), "project")
    config = config_of(a_text(project.get("label_config"), "label_config"), is_sequence=model.is_sequence)
    task, annotation = an_object(request.get("task"), "task"), an_object(request.get("annotation"), "annotation")
    return _answer(learn(model, [(task, annotation)], config))


def train(model: TextModel, request: Object) -> Object:
    """The answer of ``POST /train``: the annotations of all tasks are learnt, all or none."""
    config = config_of(a_text(request.get("label_config"), "label_config"), is_sequence=model.is_sequence)
    tasks = [an_object(value, "annotations") for value in a_list(request.get("annotations"), "annotations")]
    pairs = [
        (task, an_object(annotation, "annotations"))
        for task in tasks
        for annotation in a_list(task.get("annotations"), "annotations")
    ]
    return _answer(learn(model, pairs, config))


def _answer(learnt: Learnt) -> Object:
    return {"status": "ok", "learnt": learnt.n, "model_version": learnt.version}


def learn(model: TextModel, pairs: Sequence[tuple[Object, Object]], config: Config) -> Learnt:
    """Learn annotations of tasks, without those of annotators who skipped the task.

    Raises ValueError for one that does not fit the model, and learns none then.
    """
    _, key = CONTROLS[model.is_sequence]
    pairs = [(task, annotation) for task, annotation in pairs if not _is_skipped(annotation)]
    texts = [_text_of(task, config) for task, _ in pairs]
    values = [_values(annotation, config) for _, annotation in pairs]
    if model.is_sequence:
        spans = [_spans_of(own, key, text) for text, own in zip(texts, values, strict=True)]
        return model.teach_spans(list(map(Marked, texts, spans, map(word_spans, texts))))
    labels = [[_only(a_list(value.get(key), key), key) for value in own] for own in values]
    return model.teach_labels([(text, label) for text, own in zip(texts, labels, strict=True) for label in own])


def _is_skipped(annotation: Object) -> bool:
    """Whether an annotator skipped the task: the annotation's empty result is no answer then."""
    found = annotation.get("was_cancelled")
    if found is not None and not isinstance(found, bool):
        raise ValueError(f"was_cancelled must be true or false, got {found!r:.40}")
    return found is True


def _values(annotation: Object, config: Config) -> Sequence[Object]:
    """The values of an annotation that are the configuration's labels."""
    results = [an_object(value, "result") for value in a_list(annotation.get("result"), "result")]
    return [an_object(own.get("value"), "value") for own in results if own.get("from_name") == config.control]


def _spans_of(values: Sequence[Object], key: str, text: str) -> list[Span]:
    """The spans of values."""
    units = utf16_offsets(text)
    return [_span_of(value, key, text, units) for value in values]


def _span_of(value: Object, key: str, text: str, units: Sequence[int]) -> Span:
    """The span of a value, whose text tells how its place is counted, where characters beyond the basic plane are."""
    start, end = a_number(value.get("start"), "start"), a_number(value.get("end"), "end")
    label, own = _only(a_list(value.get(key), key), key), value.get("text")
    if not start < end <= units[-1]:
        raise ValueError(f"a span from {start} to {end} in a text of {len(text)} characters")
    for places in ((start, end), (bisect_right(units, start) - 1, bisect_right(units, end) - 1)):
        if own is None or " ".join(text[slice(*places)].split()) == " ".join(a_text(own, "text").split()):
            return Span(*places, label)
    raise ValueError(f"a span from {start} to {end}: there stands {text[start:end]!r:.60}, not {own!r:.60}")


def _only(values: Sequence[object], key: str) -> str:
    if len(values) != 1:
        raise ValueError(f"{key}: {len(values)} labels in one place, and the model gives one")
    return a_text(values[0], key)
