"""Predictions over HTTP, and the protocols of annotation tools."""

import asyncio
import base64
import hashlib
import json
import re
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structsvm
from structsvm import AdviceWarning
from structsvm.datasets import make_addresses
from structsvm.opening import load_estimator
from structsvm.risk import RiskController
from structsvm.tasks import GrammarParser, SequenceLabeler, TaxonomyClassifier

pytest.importorskip("starlette")
pytest.importorskip("httpx2")

from starlette.testclient import TestClient

from structsvm.serve import inception, label_studio
from structsvm.serve.guard import Guard
from structsvm.serve.inception import features_of, layers_of
from structsvm.serve.models import Learnt, Prediction, Span, TextModel, in_words
from structsvm.serve.server import app_for
from structsvm.serve.values import an_element, utf16_offsets
from structsvm.serve.xmi import Document
from structsvm.structures.trees import parse_tree

ADDRESS = "http://127.0.0.1:9090"
TEXT = "9702 Oak Ct Fort Bell WA 96481"
EXCHANGE = json.loads(Path(__file__).with_name("label_studio_exchange.json").read_text())
DOCCANO = json.loads(Path(__file__).with_name("doccano_exchange.json").read_text())
TASK = {
    "label_config": '<View><Choices name="kind" toName="t"><Choice value="car"/></Choices>'
    '<Text name="t" value="$text"/></View>'
}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    X, y = make_addresses(150, typos=0, ambiguity=0, random_state=0)
    path = str(tmp_path_factory.mktemp("models") / "address.model")
    SequenceLabeler(C=1.0, loss="log", random_state=0).fit(X, y).save(path)
    return path


def client_of(path, learns_to=None, **how):
    return TestClient(app_for(TextModel(path, learns_to), **how), base_url=ADDRESS)


def found_in(answer):
    return [(span["text"], span["label"]) for span in answer["spans"]]


def test_a_promise_of_the_file_is_left_out_aloud(addresses, tmp_path):
    X, y = make_addresses(60, random_state=1)
    path = str(tmp_path / "careful.model")
    RiskController(structsvm.load(addresses), alpha=0.5, delta=0.3).calibrate(X, y).save(path)
    with pytest.warns(AdviceWarning, match=r"careful\.model: its RiskController is left out"):
        client = client_of(path)
    answers = [one.post("/predict", json={"text": TEXT}).json() for one in (client, client_of(addresses))]
    assert answers[0] == answers[1]


def test_predicts_spans_with_confidence(addresses):
    client = client_of(addresses)
    answer = client.post("/predict", json={"text": TEXT}).json()
    model = structsvm.load(addresses)
    expected = model.predict_spans([TEXT.split()], probabilities=True)[0]
    assert found_in(answer) == [(" ".join(TEXT.split()[a:b]), label) for a, b, label, _ in expected]
    assert [span["confidence"] for span in answer["spans"]] == pytest.approx([p for *_, p in expected], abs=1e-6)
    best = model.predict_kbest([TEXT.split()], 1, probabilities=True)[0][0][1]
    assert answer["confidence"] == pytest.approx(best, abs=1e-6)
    assert client.post("/predict", json={"words": TEXT.split()}).json() == answer
    many = client.post("/predict", json={"texts": [TEXT, "", " ", "12 Elm St"]}).json()["predictions"]
    assert many[0] == answer and many[1]["spans"] == many[2]["spans"] == [] and len(many[3]["spans"]) == 3
    about = client.get("/").json()
    assert about["labels"] == sorted(about["labels"]) and "street" in about["labels"] and not about["learns"]


def test_predicts_classes_with_confidence(classes):
    answer = client_of(classes).post("/predict", json={"text": "a red car"}).json()
    expected = structsvm.load(classes).predict_proba(["a red car"])[0]
    assert answer["label"] == "car" and answer["confidence"] == pytest.approx(expected[0], abs=1e-6)
    assert {own["label"]: own["confidence"] for own in answer["labels"]} == pytest.approx(
        dict(zip(["car", "dog"], expected)), abs=1e-6
    )


def test_models_without_probabilities(tmp_path):
    X, y = make_addresses(30, random_state=0)
    path = str(tmp_path / "a.model")
    SequenceLabeler(solver="perceptron", loss="hamming", probability=False, random_state=0).fit(X, y).save(path)
    answer = client_of(path).post("/predict", json={"text": TEXT}).json()
    assert answer["confidence"] is None and all(span["confidence"] is None for span in answer["spans"])


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"text": 1}, {"texts": "a"}, {"texts": [1]}, {"texts": ["a"] * 10_001}, {"tasks": []}),
        *({"words": ["a", 2]}, {"words": ["a", " "]}, {"words": ["a"], "text": "a"}, {"text": "a", "texts": ["a"]}),
    ],
    ids=lambda body: str(body)[:20],
)
def test_bad_requests(addresses, body):
    found = client_of(addresses).post("/predict", json=body)
    assert found.status_code == 400 and found.json()["error"]


def test_half_a_character_is_refused(addresses):
    """JSON can escape half of a pair of UTF-16, which no answer in UTF-8 can repeat."""
    for path, body in (
        ("/predict", b'{"text": "a \\ud83d"}'),
        ("/predict", b'{"texts": ["a", "\\ude00"]}'),
        ("/predict", b'{"words": ["\\ud83d"]}'),
        ("/doccano", b'{"text": "\\ud83d"}'),
    ):
        found = client_of(addresses).post(path, content=body, headers={"Content-Type": "application/json"})
        assert found.status_code == 400 and re.match(r"(text|words|texts): half a character", found.json()["error"])
    assert client_of(addresses).post("/predict", content=b'{"text": "\\ud83d\\ude00"}').status_code == 200


def test_who_may_ask(addresses):
    client = client_of(addresses, token="secret")
    assert client.get("/health").status_code == 200
    assert client.post("/predict", json={"text": "a"}).status_code == 401
    for shown in ("Bearer secret", "Basic " + base64.b64encode(b"any:secret").decode()):
        assert client.post("/predict", json={"text": "a"}, headers={"Authorization": shown}).status_code == 200
    assert client.post("/predict", json={"text": "a"}, headers={"Authorization": "Basic ???"}).status_code == 401
    assert client.post("/predict", json={"text": "a"}, headers={"Authorization": b"Basic \xe9"}).status_code == 401
    open_one = client_of(addresses)
    assert open_one.post("/predict", json={"text": "a"}, headers={"Origin": "http://evil.example"}).status_code == 403
    assert open_one.get("/health", headers={"Host": "evil.example"}).status_code == 421
    named = client_of(addresses, names=["tagger"])
    assert named.get("/health", headers={"Host": "tagger:9090"}).status_code == 200


def test_models_that_do_not_read_texts(tmp_path):
    GrammarParser(C=1.0, random_state=0).fit([parse_tree("(S (A a) (B b))")]).save(tmp_path / "g.model")
    with pytest.raises(ValueError, match="a GrammarParser; texts are for"):
        TextModel(str(tmp_path / "g.model"))
    rows = [np.eye(2)] * 4
    SequenceLabeler(C=1.0, random_state=0).fit(rows, [["a", "b"]] * 4).save(tmp_path / "n.model")
    with pytest.raises(ValueError, match="its tokens have more than words"):
        TextModel(str(tmp_path / "n.model"))
    TaxonomyClassifier(C=1.0, random_state=0).fit([[0.0], [1.0]], ["a", "b"]).save(tmp_path / "t.model")
    with pytest.raises(ValueError, match="texts need a model with a vectorizer"):
        TextModel(str(tmp_path / "t.model"))


def test_a_model_and_its_version_are_of_one_file(entities, addresses, tmp_path, monkeypatch):
    """Also where another file takes its place once the model is read."""
    path, other, n_read = tmp_path / "a.model", tmp_path / "b.model", []
    shutil.copy(addresses, path)
    shutil.copy(entities, other)

    def load(name):
        found = load_estimator(name)
        n_read.append(name)
        if len(n_read) == 1:
            other.replace(path)
        return found

    monkeypatch.setattr("structsvm.serve.models.load_estimator", load)
    model = TextModel(str(path))
    assert model.estimator.classes_.tolist() == load_estimator(entities).classes_.tolist()
    assert model.version == TextModel(entities).version and len(n_read) == 3


def test_names_without_a_value_are_none(entities):
    client = client_of(entities)
    found = client.post("/predict", json={"text": "Ann slept", "texts": None, "words": None, "tasks": None})
    assert found.json() == client.post("/predict", json={"text": "Ann slept"}).json()
    found = client.post("/predict", json={"text": "a", "texts": []})
    assert found.status_code == 400 and found.json()["error"] == "a request has texts and text: one of them is read"


# ---- Label Studio -------------------------------------------------------------------------------


def recorded(path, action=None, place=-1):
    """A request that label-studio 1.23.2 sent to this server: the last one, or that at another place.

    It was run twice, on 29 and 30 November 2026, and sent requests of the same form; the first three are of the second
    run.
    """
    found = [own for own in EXCHANGE if own["path"] == path and (action is None or own["body"]["action"] == action)]
    return found[place]


def version_of(path, n_learnt):
    """The version of a model file, from which so many answers have been learnt."""
    return f"structsvm-{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:8]}-{n_learnt}"


def replay(client, request):
    return client.request(request["method"], request["path"], json=request["body"], headers=request["headers"])


def test_requests_of_label_studio(addresses):
    client, version = client_of(addresses), version_of(addresses, 0)
    assert replay(client, recorded("/health")).json()["status"] == "UP"
    assert replay(client, recorded("/setup")).json() == {"model_version": version}
    assert replay(client, recorded("/versions")).json() == {"versions": [version]}
    request = recorded("/predict")
    answer = replay(client, request).json()
    assert len(answer["results"]) == len(request["body"]["tasks"]) == 2
    for task, found in zip(request["body"]["tasks"], answer["results"]):
        assert 0 < found["score"] <= 1 and found["model_version"] == version
        for own in found["result"]:
            value = own["value"]
            assert (own["from_name"], own["to_name"], own["type"]) == ("label", "text", "labels")
            assert task["data"]["text"][value["start"] : value["end"]] == value["text"]
    labels = [own["value"]["labels"] for own in answer["results"][0]["result"]]
    assert labels == [["number"], ["street"], ["street_type"], ["city"], ["state"], ["zip"]]


def test_annotations_of_label_studio_are_learnt(addresses, tmp_path):
    path = tmp_path / "learnt.model"
    client = client_of(addresses, str(path))
    answer = replay(client, recorded("/webhook", "ANNOTATION_CREATED"))
    assert answer.json() == {"status": "ok", "learnt": 1, "model_version": version_of(addresses, 1)}
    assert client.get("/versions").json() == {"versions": [version_of(addresses, 1)]}
    before, after = structsvm.load(addresses), structsvm.load(path)
    assert (before.transition_ != after.transition_).any()
    assert replay(client, recorded("/webhook", "START_TRAINING")).json()["learnt"] == 0
    only_predicts = client_of(addresses)
    assert replay(only_predicts, recorded("/webhook", "ANNOTATION_CREATED")).json()["learnt"] == 0


def test_an_open_task_of_label_studio(addresses, tmp_path):
    """Requests for a task that is open, with an earlier prediction; once it was changed; and when it is skipped."""
    client = client_of(addresses, str(tmp_path / "learnt.model"))
    request = recorded("/predict", place=0)
    assert request["body"]["params"]["context"] == {"result": []} and request["body"]["tasks"][0]["predictions"]
    assert replay(client, request).json()["results"] == replay(client, recorded("/predict")).json()["results"][:1]
    assert replay(client, recorded("/webhook", "ANNOTATION_UPDATED")).json()["learnt"] == 1
    skipped = recorded("/webhook", "ANNOTATION_CREATED", place=0)
    assert skipped["body"]["annotation"]["was_cancelled"] is True
    assert replay(client, skipped).json() == {"status": "ok", "learnt": 0, "model_version": version_of(addresses, 1)}


def test_what_is_learnt_is_predicted(entities, tmp_path):
    client = client_of(entities, str(tmp_path / "learnt.model"))
    config = '<View><Labels name="l" toName="t"><Label value="P"/></Labels><Text name="t" value="$x"/></View>'
    text = "Zoe met Ann."
    value = [{"from_name": "l", "value": {"start": a, "end": b, "labels": ["P"]}} for a, b in ((0, 3), (8, 11))]
    task = {"data": {"x": text}, "annotations": [{"result": value}] * 5}
    answer = client.post("/train", json={"label_config": config, "annotations": [task]})
    assert answer.json()["learnt"] == 5
    found = client.post("/predict", json={"text": text}).json()
    assert found_in(found) == [("Zoe", "P"), ("Ann", "P")]


def test_choices_of_label_studio(classes, tmp_path):
    client = client_of(classes, str(tmp_path / "learnt.model"))
    tasks = [{"data": {"text": "red car"}}, {"data": {"text": "big dog"}}]
    first, second = client.post("/predict", json={**TASK, "tasks": tasks}).json()["results"]
    assert first["result"][0]["value"] == {"choices": ["car"]} and first["result"][0]["from_name"] == "kind"
    # A label that the project does not have is not sent.
    assert second["result"] == [] and second["score"] > 0.5
    annotation = {"result": [{"from_name": "kind", "value": {"choices": ["car"]}}]}
    body = {"action": "ANNOTATION_UPDATED", "project": TASK, "task": tasks[1], "annotation": annotation}
    assert client.post("/webhook", json=body).json()["learnt"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label_config": "<View>"}, "label_config: no XML"),
        ({"label_config": '<!DOCTYPE x [<!ENTITY a "b">]><View/>'}, "document type is refused"),
        ({"label_config": "<View/>"}, "has no <Labels> of a <Text>"),
        (
            {
                "label_config": '<View><Labels name="l" toName="t"><Label value="P"/></Labels>'
                '<Text name="t" value="$link" valueType="url"/></View>'
            },
            "$link is the address of a text",
        ),
        ({"label_config": None}, "label_config must be a text"),
        ({"tasks": [{"data": {}}]}, "data.text must be a text"),
        ({"tasks": 3}, "tasks must be a list"),
        ({"tasks": [{}] * 10_001}, "tasks: 10001 of them, and at most 10000"),
    ],
    ids=lambda value: None,
)
def test_errors_of_label_studios_requests(addresses, change, message):
    found = client_of(addresses).post("/predict", json=recorded("/predict")["body"] | change)
    assert found.status_code == 400 and message in found.json()["error"]


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 4, "planet")], "does not know the labels planet"),
        ([(0, 4, "number"), (2, 8, "street")], "two spans share the word"),
        ([(4, 5, "number")], "no word stands at characters 4 to 5"),
        ([(0, 400, "number")], "a span from 0 to 400 in a text of 30"),
    ],
    ids=["label", "overlap", "blank", "beyond"],
)
def test_annotations_that_do_not_fit_leave_the_model(addresses, tmp_path, spans, message):
    client = client_of(addresses, str(tmp_path / "learnt.model"))
    before = client.post("/predict", json={"text": TEXT}).json()
    body = json.loads(json.dumps(recorded("/webhook", "ANNOTATION_CREATED")["body"]))
    body["annotation"]["result"] = [
        {"from_name": "label", "value": {"start": a, "end": b, "labels": [label]}} for a, b, label in spans
    ]
    found = client.post("/webhook", json=body)
    assert found.status_code == 400 and message in found.json()["error"]
    assert client.post("/predict", json={"text": TEXT}).json() == before and not (tmp_path / "learnt.model").exists()


def test_a_refused_file_leaves_the_model(addresses, tmp_path):
    """A model that cannot be stored is not used: neither version nor predictions change."""
    client = client_of(addresses, str(tmp_path / "none" / "learnt.model"))
    before = client.post("/predict", json={"text": TEXT}).json()
    for _ in range(2):
        found = replay(client, recorded("/webhook", "ANNOTATION_CREATED"))
        assert found.status_code == 507 and "the model is not stored" in found.json()["error"]
        assert client.get("/versions").json() == {"versions": [version_of(addresses, 0)]}
        assert client.post("/predict", json={"text": TEXT}).json() == before
    (tmp_path / "none").mkdir()
    assert replay(client, recorded("/webhook", "ANNOTATION_CREATED")).json()["model_version"] == version_of(
        addresses, 1
    )


def test_skipped_tasks_are_not_learnt(entities, tmp_path):
    path = tmp_path / "learnt.model"
    client = client_of(entities, str(path))
    config = '<View><Labels name="l" toName="t"><Label value="P"/></Labels><Text name="t" value="$x"/></View>'
    skipped = {"result": [], "was_cancelled": True}
    task = {"data": {"x": "Zoe met Ann."}}
    body = {"action": "ANNOTATION_CREATED", "project": {"label_config": config}, "task": task, "annotation": skipped}
    nothing = {"status": "ok", "learnt": 0, "model_version": version_of(entities, 0)}
    assert client.post("/webhook", json=body).json() == nothing
    training = {"label_config": config, "annotations": [task | {"annotations": [skipped, skipped]}]}
    assert client.post("/train", json=training).json() == nothing and not path.exists()
    # An annotator who submits no span says that there is none.
    training["annotations"][0]["annotations"].append({"result": [], "was_cancelled": False})
    assert client.post("/train", json=training).json() == nothing | {
        "learnt": 1,
        "model_version": version_of(entities, 1),
    }
    training["annotations"][0]["annotations"].append({"result": [], "was_cancelled": "yes"})
    assert "was_cancelled must be true or false" in client.post("/train", json=training).json()["error"]


def test_texts_that_teach_nothing_are_not_counted(entities, classes, tmp_path):
    config = '<View><Labels name="l" toName="t"><Label value="P"/></Labels><Text name="t" value="$text"/></View>'
    tasks = [{"data": {"text": text}, "annotations": [{"result": []}]} for text in (" ", "Ann slept")]
    client = client_of(entities, str(tmp_path / "a.model"))
    found = client.post("/train", json={"label_config": config, "annotations": tasks}).json()
    assert (found["learnt"], found["model_version"]) == (1, version_of(entities, 1))
    client = client_of(classes, str(tmp_path / "b.model"))
    found = client.post("/train", json={**TASK, "annotations": tasks}).json()
    assert (found["learnt"], found["model_version"]) == (0, version_of(classes, 0))
    event = {"action": "ANNOTATION_CREATED", "project": TASK, "task": tasks[1], "annotation": {"result": []}}
    assert client.post("/webhook", json=event).json()["learnt"] == 0


def test_the_version_is_that_of_the_model_that_answered(addresses, tmp_path, monkeypatch):
    """Between an answer and its version another request may teach the model."""
    model = TextModel(addresses, str(tmp_path / "learnt.model"))
    answer = model.predict_as

    def then_learns(texts):
        found = answer(texts)
        model.n_learnt += 1
        return found

    monkeypatch.setattr(model, "predict_as", then_learns)
    found = label_studio.predict(model, recorded("/predict")["body"])
    assert {found["model_version"], *(one["model_version"] for one in found["results"])} == {version_of(addresses, 0)}


def test_many_spans_of_a_text(entities, tmp_path, monkeypatch):
    """Each place is found without reading the text again."""
    n_read = []
    monkeypatch.setattr(label_studio, "utf16_offsets", lambda text: (n_read.append(text), utf16_offsets(text))[1])
    config = '<View><Labels name="l" toName="t"><Label value="P"/></Labels><Text name="t" value="$x"/></View>'
    value = [{"from_name": "l", "value": {"start": 4 * k, "end": 4 * k + 3, "labels": ["P"]}} for k in range(50)]
    task = {"data": {"x": "Ann " * 50}, "annotations": [{"result": value}]}
    client = client_of(entities, str(tmp_path / "learnt.model"))
    assert client.post("/train", json={"label_config": config, "annotations": [task]}).json()["learnt"] == 1
    assert len(n_read) == 1


@pytest.mark.parametrize("shift", [0, 2], ids=["characters", "utf-16"])
def test_places_in_a_text_with_emoji(entities, tmp_path, shift, monkeypatch):
    """JavaScript counts each of these twice; the text of the span tells which count it is."""
    learnt = []

    def teach_spans(_, answers):
        learnt.extend(one.spans for one in answers)
        return Learnt(len(answers), "structsvm-1")

    monkeypatch.setattr(TextModel, "teach_spans", teach_spans)
    config = '<View><Labels name="l" toName="t"><Label value="P"/></Labels><Text name="t" value="$x"/></View>'
    value = {"start": 7 + shift, "end": 10 + shift, "text": "Ann", "labels": ["P"]}
    task = {
        "data": {"x": "\U0001f600\U0001f600 met Ann"},
        "annotations": [{"result": [{"from_name": "l", "value": value}]}],
    }
    body = {"label_config": config, "annotations": [task]}
    client = client_of(entities, str(tmp_path / "learnt.model"))
    assert client.post("/train", json=body).status_code == 200 and learnt == [[Span(7, 10, "P")]]
    value["text"] = "Bob"
    found = client.post("/train", json=body)
    assert found.status_code == 400 and "there stands" in found.json()["error"] and len(learnt) == 1


def test_a_control_of_an_address_beside_one_of_a_text():
    config = label_studio.config_of(
        '<View><Labels name="k" toName="u"/><Text name="u" value="$link" valueType="url"/>'
        '<Labels name="l" toName="t"><Label value="P"/></Labels><Text name="t" value="$x"/></View>',
        is_sequence=True,
    )
    assert config == ("l", "t", "x", frozenset("P"))


def test_a_span_that_cuts_a_word_has_it_whole():
    assert in_words([Span(1, 6, "x")], [(0, 4), (5, 8), (9, 12)]) == [(0, 2, "x")]


def test_of_several_annotations_all_are_learnt_or_none(classes, tmp_path):
    client = client_of(classes, str(tmp_path / "learnt.model"))
    tasks = [
        {"data": {"text": text}, "annotations": [{"result": [{"from_name": "kind", "value": {"choices": [label]}}]}]}
        for text, label in (("big car", "car"), ("owl", "bird"))
    ]
    found = client.post("/train", json={**TASK, "annotations": tasks})
    assert found.status_code == 400 and "does not know the labels bird" in found.json()["error"]
    assert (
        client.get("/versions").json() == {"versions": [version_of(classes, 0)]}
        and not (tmp_path / "learnt.model").exists()
    )
    assert client.post("/train", json={**TASK, "annotations": tasks[:1]}).json()["model_version"] == version_of(
        classes, 1
    )


# ---- doccano ------------------------------------------------------------------------------------


def test_doccano(addresses, classes):
    found = client_of(addresses).post("/doccano", json={"text": TEXT}).json()
    assert [(TEXT[own["start_offset"] : own["end_offset"]], own["label"]) for own in found][:2] == [
        ("9702", "number"),
        ("Oak", "street"),
    ]
    assert client_of(classes).post("/doccano", json={"text": "old car"}).json() == [{"label": "car"}]


def test_requests_of_doccano(addresses, classes):
    """Requests that doccano 1.8.4 sent to this server, recorded, whose answers it stored as spans and as a category."""
    *texts, of_class = DOCCANO
    for request in texts:
        text = request["body"]["text"]
        found = replay(client_of(addresses), request)
        assert found.status_code == 200
        # doccano's own fields, and no others: it stores each as it comes.
        assert all(set(own) == {"label", "start_offset", "end_offset"} for own in found.json())
        pieces = [text[own["start_offset"] : own["end_offset"]] for own in found.json()]
        assert pieces == [" ".join(piece.split()) for piece in pieces] and bool(pieces) == bool(text)
    assert replay(client_of(classes, token="secret"), of_class).json() == [{"label": "car"}]
    assert replay(client_of(classes, token="another"), of_class).status_code == 401


def test_doccanos_mapping_template(addresses):
    """The template of the documentation makes JSON of labels with any letters."""
    jinja2 = pytest.importorskip("jinja2")
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text()
    template = jinja2.Template(
        re.split(r"mapping\s+template", page, maxsplit=1)[1].split("```")[1].removeprefix("text")
    )
    answer = [{"label": 'a "b" \\ <c>', "start_offset": 0, "end_offset": 2}]
    assert json.loads(template.render(input=answer)) == answer
    assert json.loads(template.render(input=[])) == []


# ---- INCEpTION ----------------------------------------------------------------------------------
# Documents written by hand, also such as INCEpTION never sends. Requests as its client makes them: test_inception.py.

SEGMENTATION = "http:///de/tudarmstadt/ukp/dkpro/core/api/segmentation/type.ecore"
NER = "http:///de/tudarmstadt/ukp/dkpro/core/api/ner/type.ecore"
SEGMENTS = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type."
LAYER = {"layer": "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity", "feature": "value", "projectId": 1}


def xmi_of(text, words, sentences, annotations=""):
    """A document as INCEpTION sends it; offsets count halves of characters beyond the basic plane."""
    tokens = "".join(
        f'<type:Token xmi:id="{10 + k}" sofa="1" begin="{a}" end="{b}"/>' for k, (a, b) in enumerate(words)
    )
    tokens += "".join(
        f'<type:Sentence xmi:id="{90 + k}" sofa="1" begin="{a}" end="{b}"/>' for k, (a, b) in enumerate(sentences)
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<xmi:XMI xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" '
        f'xmlns:type="{SEGMENTATION}" xmlns:ner="{NER}" xmi:version="2.0"><cas:NULL xmi:id="0"/>{tokens}{annotations}'
        f'<cas:Sofa xmi:id="1" sofaNum="1" sofaID="_InitialView" mimeType="text" sofaString="{text}"/>'
        '<cas:View sofa="1" members="10"/></xmi:XMI>'
    )


def types_of(*features, layer=LAYER["layer"], above="uima.tcas.Annotation"):
    """A type system with one layer."""
    described = "".join(f"<featureDescription><name>{name}</name></featureDescription>" for name in features)
    return (
        '<typeSystemDescription xmlns="http://uima.apache.org/resourceSpecifier"><types><typeDescription>'
        f"<name>{layer}</name><supertypeName>{above}</supertypeName><features>{described}</features>"
        "</typeDescription></types></typeSystemDescription>"
    )


def predicted_in(answer):
    root = ET.fromstring(answer.json()["document"])
    return root, [dict(own.attrib) for own in root.iterfind(f"{{{NER}}}NamedEntity")]


def test_inception_predicts(entities):
    text = "😀 Ann slept. She likes New York."
    words = [(0, 2), (3, 6), (7, 12), (12, 13), (14, 17), (18, 23), (24, 27), (28, 32), (32, 33)]
    document = {"xmi": xmi_of(text, words, [(0, 13), (14, 33)]), "documentId": 1, "userId": "eve"}
    body = {"metadata": LAYER, "document": document, "typeSystem": types_of("value", "value_score")}
    root, found = predicted_in(client_of(entities).post("/inception/predict", json=body))
    assert [(own["begin"], own["end"], own["value"]) for own in found] == [("3", "6", "P"), ("24", "32", "L")]
    assert all(own["inception_internal_predicted"] == "true" and 0 < float(own["value_score"]) <= 1 for own in found)
    ids = [own["{http://www.omg.org/XMI}id"] for own in found]
    members = root.find("{http:///uima/cas.ecore}View").get("members").split()
    assert members == ["10", *ids] and len(set(ids)) == 2
    # Without the feature in its types, a document with it could not be read.
    other = types_of("value_score", layer="custom.Other")
    for types in ("", types_of("value", "value_score_explanation", "my_value_score"), other):
        _, found = predicted_in(client_of(entities).post("/inception/predict", json=body | {"typeSystem": types}))
        assert found and not any("value_score" in own for own in found)


def test_features_of_a_type_are_those_above_it_too():
    one, two = types_of("a", layer="x.Upper"), types_of("b", layer="x.Lower", above="x.Upper")
    types = one.replace("</types>", two.split("<types>")[1].split("</types>")[0] + "</types>")
    found = inception.types_of(types)
    assert layers_of(found, "x.Upper") == ["x.Upper", "x.Lower"] and layers_of(found, "x.Lower") == ["x.Lower"]
    assert features_of(found, "x.Lower") == {"a", "b"} and features_of(found, "x.Upper") == {"a"}
    # Types above each other do not go on for ever.
    around = inception.types_of(types_of("a", layer="x.Own", above="x.Own"))
    assert features_of(around, "x.Own") == {"a"} and layers_of(around, "x.Own") == ["x.Own"]


def test_inception_labels_sentences(classes):
    text = "red car. big dog."
    body = {"metadata": LAYER, "document": {"xmi": xmi_of(text, [], [(0, 8), (9, 17)])}, "typeSystem": ""}
    _, found = predicted_in(client_of(classes).post("/inception/predict", json=body))
    assert [(own["begin"], own["end"], own["value"]) for own in found] == [("0", "8", "car"), ("9", "17", "dog")]


def test_inception_trains(entities, tmp_path):
    path = tmp_path / "learnt.model"
    entity = '<ner:NamedEntity xmi:id="200" sofa="1" begin="0" end="3" value="P"/>'
    xmi = xmi_of("Zoe slept. Not seen", [(0, 3), (4, 9), (9, 10), (11, 14), (15, 19)], [(0, 10), (11, 19)], entity)
    body = {"metadata": LAYER, "documents": [{"xmi": xmi, "documentId": 1, "userId": "eve"}] * 4, "typeSystem": ""}
    client = client_of(entities, str(path))
    answer = client.post("/inception/train", json=body)
    assert answer.status_code == 204 and not answer.content
    assert client.get("/versions").json() == {"versions": [version_of(entities, 4)]}
    assert structsvm.load(path).predict([["Zoe", "slept"]]) == [["B-P", "O"]]
    refused = client_of(entities).post("/inception/train", json=body)
    assert refused.status_code == 400 and "--learn" in refused.json()["error"]


@pytest.mark.parametrize(
    ("xmi", "message"),
    [
        ("<x/>", "one text and one view"),
        ("<x", "no XML"),
        (xmi_of("ab", [(0, 9)], []), "an annotation from '0' to '9'"),
        (xmi_of("ab", [("x", 1)], []), "an annotation from 'x'"),
    ],
    ids=["no-text", "no-xml", "beyond", "no-number"],
)
def test_documents_that_are_none(entities, xmi, message):
    body = {"metadata": LAYER, "document": {"xmi": xmi}, "typeSystem": ""}
    found = client_of(entities).post("/inception/predict", json=body)
    assert found.status_code == 400 and message in found.json()["error"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"feature": "a b"}, "feature: 'a b' is no name"),
        ({"feature": 'x="1" y'}, "is no name of a feature"),
        ({"feature": "begin"}, "feature: 'begin' is no name"),
        ({"feature": "end"}, "feature: 'end' is no name"),
        ({"feature": "sofa"}, "feature: 'sofa' is no name"),
        ({"feature": "xmlns"}, "feature: 'xmlns' is no name"),
        ({"feature": "\u00aa"}, "feature: '\u00aa' is no name"),  # a name in Python, and none in XML
        ({"feature": "inception_internal_predicted"}, "marks predictions"),
        ({"layer": "a b.C"}, "layer: 'a b.C' is no name of a type"),
        ({"layer": "a..C"}, "layer: 'a..C' is no name of a type"),
        ({"layer": 'a"b.C'}, "is no name of a type"),
        ({"layer": "a.\u00aa"}, "is no name of a type"),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize("path", ["predict", "train"])
def test_names_of_layers_and_features(entities, tmp_path, change, message, path):
    document = {"xmi": xmi_of("Ann slept", [(0, 3), (4, 9)], [])}
    body = {"metadata": LAYER | change, "document": document, "documents": [document], "typeSystem": ""}
    client = client_of(entities, str(tmp_path / "learnt.model"))
    found = client.post(f"/inception/{path}", json=body)
    assert found.status_code == 400 and message in found.json()["error"]


def test_numbers_of_annotations_and_their_ids():
    """Digits of other scripts, and thousands of them, are no numbers."""
    entity = '<ner:NamedEntity xmi:id="\u00b2" sofa="1" begin="0" end="1" value="x"/>'
    document = Document(xmi_of("ab", [(0, 2)], [], entity + entity.replace("\u00b2", "9" * 5000)))
    document.add("a.B", "value", [(Span(0, 1, "x"), {})])
    assert 'xmi:id="11"' in document.to_xmi()
    for wrong in ("\u00b2", "9" * 5000):
        with pytest.raises(ValueError, match="an annotation from"):
            Document(xmi_of("ab", [(0, wrong)], [])).places(SEGMENTS + "Token")


def test_deep_xml_is_refused(entities):
    xmi = xmi_of("Ann slept", [(0, 3), (4, 9)], [], "<ner:X>" * 5000 + "</ner:X>" * 5000)
    body = {"metadata": LAYER, "document": {"xmi": xmi}, "typeSystem": ""}
    found = client_of(entities).post("/inception/predict", json=body)
    assert found.status_code == 400 and found.json()["error"] == "xmi: XML nested deeper than 100 levels"


def test_deep_xml_is_refused_while_it_is_read():
    assert an_element("<a>" * 100 + "</a>" * 100, "xmi").tag == "a"
    assert len(an_element("<a>" + "<b></b>" * 500 + "</a>", "xmi")) == 500
    with pytest.raises(ValueError, match="xmi: XML nested deeper than 100 levels"):
        an_element("<a>" * 101 + "</b>", "xmi")
    with pytest.raises(ValueError, match="xmi: no XML"):
        an_element("<a>" * 100 + "</b>", "xmi")


def test_places_take_four_bytes_a_character():
    units = utf16_offsets("a\U0001f600" * 50_000)
    assert units[:4].tolist() == [0, 1, 3, 4] and units[-1] == 150_000 and len(units) == 100_001
    assert sys.getsizeof(units) < 5 * len(units)


def test_large_requests_are_read_one_after_another():
    n_open, most_open, answered = 0, 0, []

    async def inner(scope, receive, send):
        nonlocal n_open, most_open
        n_open += 1
        most_open = max(n_open, most_open)
        answered.append(len((await receive())["body"]))
        for _ in range(5):
            await asyncio.sleep(0)
        n_open -= 1

    async def ask(guard, path, *parts):
        waiting, sent = list(parts), []

        async def receive():
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b"x" * waiting.pop(0), "more_body": bool(waiting)}

        async def send(message):
            sent.append(message.get("status"))

        headers = [(b"host", b"127.0.0.1")]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        await guard(scope, receive, send)
        return sent[0] if sent else None

    async def ask_all(*asked):
        guard = Guard(inner, max_body=10, larger={"/large": 100})
        return await asyncio.gather(*(ask(guard, *own) for own in asked))

    assert asyncio.run(ask_all(*[("/large", 8, 8, 8)] * 3)) == [None] * 3
    assert answered == [24] * 3 and most_open == 1
    # A refused one lets the next in, and small ones do not wait.
    assert asyncio.run(ask_all(("/large", 50, 60), ("/large", 11), ("/small", 11))) == [413, None, 413]
    most_open = 0
    assert asyncio.run(ask_all(("/large", 11), ("/large", 10), ("/small", 10))) == [None] * 3
    assert most_open == 3


def n_lines(work):
    """How many lines of Python run."""
    n = 0

    def count(frame, event, _):
        nonlocal n
        n += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return n


def long_document(n):
    places = [(4 * k, 4 * k + 3) for k in range(2 * n)]
    entities = "".join(f'<ner:NamedEntity begin="{a}" end="{b}" value="P"/>' for a, b in places[::2])
    return xmi_of("Ann " * (2 * n), places, [(8 * k, 8 * k + 8) for k in range(n)], entities)


class Same:
    """A model that finds the first word of each sentence, and forgets what it is taught."""

    is_sequence = True

    def predict_words(self, text, places):
        return Prediction(text, None, (Span(*places[0], "P"),))

    def teach_spans(self, answers, *, senders):
        assert len(senders) == len(answers) and all(len(in_words(spans, places)) == 1 for _, spans, places in answers)


@pytest.mark.parametrize("do", [inception.predict, inception.train])
def test_work_grows_with_the_length_of_a_document(do):
    def work(n):
        document = {"xmi": long_document(n)}
        request = {"metadata": LAYER, "document": document, "documents": [document]}
        return n_lines(lambda: do(Same(), request))

    assert work(400) < 2.1 * work(200)


def test_work_grows_with_the_number_of_spans():
    def work(n):
        places = [(4 * k, 4 * k + 3) for k in range(n)]
        spans = [Span(a, b, "P") for a, b in places]
        assert in_words(spans, places) == [(k, k + 1, "P") for k in range(n)]
        return n_lines(lambda: in_words(spans, places))

    assert work(400) < 2.1 * work(200)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), max_size=6), st.integers(0, 12), st.integers(1, 5))
def test_words_of_a_span_are_all_that_it_touches(words, start, length):
    places = sorted((a, a + n) for a, n in words)
    touched = [k for k, (a, b) in enumerate(places) if a < start + length and start < b]
    span = Span(start, start + length, "x")
    if touched:
        assert in_words([span], places) == [(touched[0], touched[-1] + 1, "x")]
    else:
        with pytest.raises(ValueError, match="no word stands"):
            in_words([span], places)


def test_layers_are_names_of_types():
    document = Document(xmi_of("ab", [(0, 2)], []))
    assert document.words == [(0, 2)]
    with pytest.raises(ValueError, match="is no name of a type"):
        document.add("a.b c", "value", [(Span(0, 1, "x"), {})])


def test_inception_reads_what_it_sent(entities, classes, tmp_path):
    """Documents and types are made and read by the library that INCEpTION's own recommenders use."""
    cassis = pytest.importorskip("cassis")
    types = cassis.TypeSystem()
    made = {}
    for name, features in (
        (SEGMENTS + "Token", ()),
        (SEGMENTS + "Sentence", ()),
        (LAYER["layer"], ("value", "value_score", "inception_internal_predicted")),
    ):
        made[name] = types.create_type(name, supertypeName="uima.tcas.Annotation")
        for feature in features:
            kind = {"value": "String", "value_score": "Double"}.get(feature, "Boolean")
            types.create_feature(made[name], feature, f"uima.cas.{kind}")
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string, cas.sofa_mime = "😀 Ann slept. She likes New\u00a0York & <Bob>.", "text"
    for name, places in (
        ("Token", [(0, 1), (2, 5), (6, 11), (11, 12), (13, 16), (17, 22), (23, 26), (27, 31), (35, 38)]),
        ("Sentence", [(0, 12), (13, 40)]),
    ):
        for begin, end in places:
            cas.add(made[SEGMENTS + name](begin=begin, end=end))
    own = made[LAYER["layer"]](begin=6, end=11, value="V")
    cas.add(own)
    body = {"metadata": LAYER, "typeSystem": types.to_xml(), "document": {"xmi": cas.to_xmi()}}

    def annotations(client):
        answer = client.post("/inception/predict", json=body).json()
        found = cassis.load_cas_from_xmi(answer["document"], cassis.load_typesystem(types.to_xml()))
        assert found.sofa_string == cas.sofa_string and len(found.select(SEGMENTS + "Token")) == 9
        return found.select(LAYER["layer"])

    found = [(one.get_covered_text(), one.value) for one in annotations(client_of(entities))]
    assert ("Ann", "P") in found and ("New\u00a0York", "L") in found and ("slept", "V") in found
    assert [one.inception_internal_predicted for one in annotations(client_of(entities)) if one.value != "V"] == [
        True
    ] * (len(found) - 1)
    assert all(0.0 < one.value_score <= 1.0 for one in annotations(client_of(entities)) if one.value != "V")
    assert [one.get_covered_text() for one in annotations(client_of(classes)) if one.value != "V"] == [
        "😀 Ann slept.",
        "She likes New\u00a0York & <Bob>.",
    ]
    client = client_of(entities, str(tmp_path / "learnt.model"))
    training = {**body, "documents": [body["document"]]}
    assert "does not know the labels V" in client.post("/inception/train", json=training).json()["error"]
    own.value = "P"
    training["documents"] = [{"xmi": cas.to_xmi()}]
    assert client.post("/inception/train", json=training).status_code == 204
    assert client.get("/versions").json() == {"versions": [version_of(entities, 1)]}
