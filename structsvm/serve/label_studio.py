"""Label Studio's protocol of machine-learning backends: health, setup, predict, webhook, train.

Requests and answers are those that label-studio 1.x sends and reads (its `ml/api_connector`). A project's configuration
says where its text and its labels are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from structsvm.serve.models import Prediction, Span, TextModel
from structsvm.serve.values import Object, a_list, a_number, a_text, an_element, an_object

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
        Without a text, or without a tag for the model's labels.
    """
    root, (tag, _) = an_element(text, "label_config"), CONTROLS[is_sequence]
    texts = {own.get("name"): own.get("value", "") for own in root.iter("Text")}
    for control in root.iter(tag):
        source = control.get("toName")
        name, field = control.get("name"), texts.get(source, "")
        if name and source and field.startswith("$"):
            values = (own.get("alias") or own.get("value") for own in control)
            return Config(name, source, field[1:], frozenset(value for value in values if value))
    raise ValueError(f"label_config: has no <{tag}> of a <Text>, which this model labels")


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
    tasks = [an_object(task, "tasks") for task in a_list(request.get("tasks"), "tasks")]
    texts = [_text_of(task, config) for task in tasks]
    results = [_result(own, config, model) for own in model.predict(texts)]
    return {"results": results, "model_version": model.version}


def _text_of(task: Object, config: Config) -> str:
    return a_text(an_object(task.get("data"), "data").get(config.field), f"data.{config.field}")


def _result(prediction: Prediction, config: Config, model: TextModel) -> Object:
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
    return {"result": found, "score": prediction.confidence, "model_version": model.version}


def webhook(model: TextModel, request: Object) -> Object:
    """The answer of ``POST /webhook``: an annotation that was made or changed is learnt, other events are not."""
    if request.get("action") not in CREATED or model.learns_to is None:
        return {"status": "ok", "learnt": 0, "model_version": model.version}
    project = an_object(request.get("project"), "project")
    config = config_of(a_text(project.get("label_config"), "label_config"), is_sequence=model.is_sequence)
    task, annotation = an_object(request.get("task"), "task"), an_object(request.get("annotation"), "annotation")
    learn(model, task, annotation, config)
    return {"status": "ok", "learnt": 1, "model_version": model.version}


def train(model: TextModel, request: Object) -> Object:
    """The answer of ``POST /train``: all annotations of the tasks that it has are learnt, one after the other."""
    config = config_of(a_text(request.get("label_config"), "label_config"), is_sequence=model.is_sequence)
    n = 0
    for value in a_list(request.get("annotations"), "annotations"):
        task = an_object(value, "annotations")
        for annotation in a_list(task.get("annotations"), "annotations"):
            learn(model, task, an_object(annotation, "annotations"), config)
            n += 1
    return {"status": "ok", "learnt": n, "model_version": model.version}


def learn(model: TextModel, task: Object, annotation: Object, config: Config) -> None:
    """Learn one annotation of a task. Raises ValueError for one that does not fit the model."""
    text = _text_of(task, config)
    _, key = CONTROLS[model.is_sequence]
    results = [an_object(value, "result") for value in a_list(annotation.get("result"), "result")]
    own = [an_object(result.get("value"), "value") for result in results if result.get("from_name") == config.control]
    if model.is_sequence:
        model.teach_spans(text, [_span_of(value, key, text) for value in own])
    else:
        for value in own:
            model.teach_label(text, _only(a_list(value.get(key), key), key))


def _span_of(value: Object, key: str, text: str) -> Span:
    """The span of a value, whose text tells how its place is counted, where characters beyond the basic plane are."""
    start, end = a_number(value.get("start"), "start"), a_number(value.get("end"), "end")
    label, own = _only(a_list(value.get(key), key), key), value.get("text")
    if not start < end <= len(text.encode("utf-16-le")) // 2:
        raise ValueError(f"a span from {start} to {end} in a text of {len(text)} characters")
    for places in ((start, end), (_characters(text, start), _characters(text, end))):
        if own is None or " ".join(text[slice(*places)].split()) == " ".join(a_text(own, "text").split()):
            return Span(*places, label)
    raise ValueError(f"a span from {start} to {end}: there stands {text[start:end]!r:.60}, not {own!r:.60}")


def _characters(text: str, units: int) -> int:
    """The number of characters that so many units of UTF-16 are, as JavaScript counts them."""
    return len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))


def _only(values: Sequence[object], key: str) -> str:
    if len(values) != 1:
        raise ValueError(f"{key}: {len(values)} labels in one place, and the model gives one")
    return a_text(values[0], key)
