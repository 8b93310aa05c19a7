"""Requests of INCEpTION: as its client makes them, and with documents of many letters.

INCEpTION, a program in Java that is in no package index, was not run, so nothing here is recorded from it. The requests
in inception_exchange.json are the next best: InceptionRequests.java makes the calls that INCEpTION's client makes.
Apache UIMA wrote the documents and types, Jackson the fields, which are those of the classes PredictionRequest,
TrainingRequest, Document, Metadata and Range in INCEpTION's source; Java's HTTP client sent them to `structsvm serve`,
and `found` is what UIMA's reader, by which INCEpTION reads answers, found in ours. Here dkpro-cassis reads them.
"""

import json
import warnings
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structsvm

pytest.importorskip("starlette")
pytest.importorskip("httpx2")
pytest.importorskip("cassis")

import cassis
from starlette.testclient import TestClient

from structsvm.serve import inception, values
from structsvm.serve.models import Prediction, Span, TextModel
from structsvm.serve.server import _object, app_for

EXCHANGE = json.loads(Path(__file__).with_name("inception_exchange.json").read_text())
OF_PREDICTIONS = [kept for kept in EXCHANGE if kept["path"] == "predict"]
DKPRO = "de.tudarmstadt.ukp.dkpro.core.api."
TOKEN, SENTENCE = f"{DKPRO}segmentation.type.Token", f"{DKPRO}segmentation.type.Sentence"
ENTITY, POS = f"{DKPRO}ner.type.NamedEntity", f"{DKPRO}lexmorph.type.pos.POS"
# Letters of one and of two halves in UTF-16, from right to left, joined, combining, and such as XML escapes.
LETTERS = "aB\u00e9\u05d0\u0627\u200d\u0301\U0001f600\U0001d49c&<>\"'"


def kept_of(path, name):
    return next(kept for kept in EXCHANGE if (kept["path"], kept["name"]) == (path, name))


def server_of(kept, entities, classes, learns_to=None):
    model = TextModel(classes if kept["name"] == "sentences" else entities, learns_to)
    return TestClient(app_for(model), base_url="http://127.0.0.1:9090")


def send(client, path, body):
    return client.post(f"/inception/{path}", content=body.encode(), headers={"content-type": "application/json"})


def changed(kept, documents=None, **metadata):
    """The body of a kept request with other metadata."""
    body = json.loads(kept["body"])
    return json.dumps(body | {"metadata": body["metadata"] | metadata} | (documents or {}))


def cas_of(xmi, types):
    with warnings.catch_warnings():
        # Cassis warns of offsets where the text of an annotation is cut; here none may be.
        warnings.simplefilter("error")
        return cassis.load_cas_from_xmi(xmi, cassis.load_typesystem(types))


def annotations_in(cas):
    return [(one.type.name, one.begin, one.end) for one in cas.select("uima.tcas.Annotation")]


@pytest.mark.parametrize("kept", OF_PREDICTIONS, ids=lambda kept: kept["name"])
def test_answers_are_read_as_uima_reads_them(kept, entities, classes):
    request = json.loads(kept["body"])
    answer = send(server_of(kept, entities, classes), "predict", kept["body"])
    assert answer.status_code == 200 and set(answer.json()) == {"document"}
    layer, feature = request["metadata"]["layer"], request["metadata"]["feature"]
    before, after = (
        cas_of(xmi, request["typeSystem"]) for xmi in (request["document"]["xmi"], answer.json()["document"])
    )
    found = [one for one in after.select(layer) if one.inception_internal_predicted]
    shown = [(one.get_covered_text(), one[feature], one[f"{feature}_score"]) for one in found]
    assert [own[:2] for own in shown] == [(text, label) for _, _, text, label, _ in kept["found"]]
    assert [p for *_, p in shown] == pytest.approx([p for *_, p in kept["found"]], abs=1e-3)
    # INCEpTION counts halves of characters, as Java does.
    root = ET.fromstring(answer.json()["document"])
    places = [
        [int(own.get("begin")), int(own.get("end"))]
        for own in root
        if own.get("inception_internal_predicted") == "true"
    ]
    assert places == [own[:2] for own in kept["found"]]
    # All else is as it was.
    assert after.sofa_string == before.sofa_string
    others = annotations_in(after)
    for one in found:
        others.remove((layer, one.begin, one.end))
    assert others == annotations_in(before)


def test_words_of_a_layer_of_single_words_are_predicted_one_by_one(entities, classes):
    """INCEpTION drops what has several words there, and sentences that are none."""
    kept = kept_of("predict", "single words")
    assert [text for _, _, text, *_ in kept["found"]] == ["Ann", "New", "York"]
    client = server_of(kept, entities, classes)
    joined = send(client, "predict", changed(kept, anchoringMode="tokens")).json()["document"]
    (whole,) = [own for own in ET.fromstring(joined) if own.get("PosValue") == "L"]
    assert (whole.get("begin"), whole.get("end")) == ("11", "19")
    # "New York" may be "New" and "York" as well: each word of it is at least as probable.
    assert all(p >= float(whole.get("PosValue_score")) for *_, label, p in kept["found"] if label == "L")
    rows = structsvm.load(entities).predict_marginals([["\U0001d49c", "Ann", "saw", "New", "York", "."]])[0]
    labels = structsvm.load(entities).classes_.tolist()
    chances = [
        sum(row[labels.index(f"{tag}-{kind}")] for tag in ("B", "I") if f"{tag}-{kind}" in labels)
        for row, kind in ((rows[1], "P"), (rows[3], "L"), (rows[4], "L"))
    ]
    assert [p for *_, p in kept["found"]] == pytest.approx(chances, abs=1e-3)


@pytest.mark.parametrize("path", ["predict", "train"])
@pytest.mark.parametrize(
    ("name", "anchoring", "message"),
    [("spans of words", "sentences", "the model labels spans of words"), ("sentences", "singleToken", "sentences")],
)
def test_layers_that_a_model_has_no_labels_for(path, name, anchoring, message, entities, classes, tmp_path):
    kept = kept_of(path, name)
    client = server_of(kept, entities, classes, str(tmp_path / "learnt.model"))
    found = send(client, path, changed(kept, anchoringMode=anchoring))
    assert found.status_code == 400 and f"the layer has {anchoring}" in found.json()["error"]
    assert message in found.json()["error"] and client.get("/versions").json()["versions"][0].endswith("-0")


@pytest.mark.parametrize(
    ("name", "learnt"),
    [
        # Another feature's annotation, a prediction, an empty document and one without annotations teach nothing.
        ("spans of words", [(["\U0001f600\U0001f600", "Zoe", "slept", "."], ["O", "B-P", "O", "O"])]),
        # Types below the layer's are its too.
        ("single words", [(["Zoe", "saw", "New", "York"], ["B-P", "O", "B-L", "B-L"])]),
        ("sentences", [("\U0001f600 blue van.", "car")]),
    ],
)
def test_training_takes_what_is_labelled(name, learnt, entities, classes, tmp_path, monkeypatch):
    kept, taught = kept_of("train", name), []
    client = server_of(kept, entities, classes, str(tmp_path / "learnt.model"))
    kind = type(structsvm.load(classes if name == "sentences" else entities))
    before = kind.partial_fit

    def partial_fit(self, X, y):
        taught.extend(zip(X, y, strict=True))
        return before(self, X, y)

    monkeypatch.setattr(kind, "partial_fit", partial_fit)
    for _ in range(2):
        # INCEpTION sends all documents each time.
        assert send(client, "train", kept["body"]).status_code == 204
        assert taught == learnt and client.get("/versions").json()["versions"][0].endswith("-1")
    # Twice in the documents, it is learnt once more.
    documents = json.loads(kept["body"])["documents"]
    assert send(client, "train", changed(kept, {"documents": documents[:1] * 2})).status_code == 204
    assert taught == learnt * 2 and client.get("/versions").json()["versions"][0].endswith("-2")


def marked_as(kept, *values, user="eve"):
    """Documents of a user, each the first of a request with another label."""
    first = json.loads(kept["body"])["documents"][0]
    xmi = first["xmi"]
    assert xmi.count('value="P"') == 1
    return {"documents": [{"xmi": xmi.replace('value="P"', f'value="{value}"'), "userId": user} for value in values]}


@pytest.mark.parametrize(
    ("requests", "n_learnt"),
    [
        # Changed, and changed back.
        ((["P"], ["P"], ["L"], ["L"], ["P"]), [1, 1, 2, 2, 3]),
        # The same sentence twice, of which one is changed, and changed back.
        ((["P", "L"], ["L", "P"], ["L", "L"], ["P", "L"]), [2, 2, 3, 4]),
        # One taken away, and made anew.
        ((["P", "L"], ["L"], ["P", "L"]), [2, 2, 3]),
    ],
)
def test_what_a_user_changed_is_learnt(requests, n_learnt, entities, classes, tmp_path):
    kept = kept_of("train", "spans of words")
    client = server_of(kept, entities, classes, str(tmp_path / "learnt.model"))
    for labels, n in zip(requests, n_learnt, strict=True):
        assert send(client, "train", changed(kept, marked_as(kept, *labels))).status_code == 204
        assert client.get("/versions").json()["versions"][0].endswith(f"-{n}")


def test_two_users_who_disagree(entities, classes, tmp_path):
    kept = kept_of("train", "spans of words")
    client = server_of(kept, entities, classes, str(tmp_path / "learnt.model"))
    for value, user, n in (("P", "eve", 1), ("L", "bob", 2), ("P", "eve", 2), ("L", "bob", 2), ("P", "bob", 3)):
        assert send(client, "train", changed(kept, marked_as(kept, value, user=user))).status_code == 204
        assert client.get("/versions").json()["versions"][0].endswith(f"-{n}")


@pytest.mark.parametrize("path", ["predict", "train"])
def test_null_is_as_good_as_nothing(path, entities, classes, tmp_path):
    kept = kept_of(path, "spans of words")
    client = server_of(kept, entities, classes, str(tmp_path / "learnt.model"))
    body = json.loads(changed(kept, {"typeSystem": None}, anchoringMode=None))
    answers = [send(client, path, json.dumps(body))]
    del body["typeSystem"], body["metadata"]["anchoringMode"]
    answers.append(send(client, path, json.dumps(body)))
    assert answers[0].status_code == answers[1].status_code < 300 and answers[0].text == answers[1].text
    found = send(client, path, json.dumps(body | {"typeSystem": []}))
    assert found.status_code == 400 and found.json()["error"] == "typeSystem must be a text"


def test_what_could_not_be_stored_is_learnt_the_next_time(entities, classes, tmp_path):
    kept, folder = kept_of("train", "spans of words"), tmp_path / "models"
    client = server_of(kept, entities, classes, str(folder / "learnt.model"))
    assert send(client, "train", kept["body"]).status_code == 507
    folder.mkdir()
    assert send(client, "train", kept["body"]).status_code == 204
    assert client.get("/versions").json()["versions"][0].endswith("-1")


def test_a_request_has_all_documents_of_a_project(entities, classes, tmp_path):
    """Twenty of the size that INCEpTION's developers publish are 50 MB."""
    kept = kept_of("train", "spans of words")
    client = server_of(kept, entities, classes, str(tmp_path / "learnt.model"))
    assert send(client, "train", changed(kept, {"more": "x" * 50_000_000})).status_code == 204
    for path, most in (("inception/train", 2**28), ("inception/predict", 2**25), ("train", 2**25), ("predict", 2**25)):
        found = client.post(f"/{path}", content=b"{}", headers={"content-length": str(most + 1)})
        assert found.status_code == 413 and found.json()["error"] == f"a request has at most {most} bytes"


@pytest.mark.parametrize(
    ("more", "is_read"),
    [
        (b"[" + b"[]," * 400_000 + b"0]", False),
        (b"[" + b'"",' * 600_000 + b"0]", False),
        (rb'"' + rb"\"\\[]" * 600_000 + b'"', True),
    ],
    ids=["lists", "texts", "one text"],
)
def test_large_requests_are_a_few_long_texts(more, is_read):
    body = b'{"a": "' + b"x" * 2**25 + b'", "more": ' + more + b"}"
    if is_read:
        assert set(_object(body)) == {"a", "more"}
        return
    with pytest.raises(ValueError, match="has more than 1048576 parts"):
        _object(body)


def test_a_document_is_bounded(monkeypatch):
    monkeypatch.setattr(values, "MAX_XML", 10)
    assert values.an_element("<a></a>   ", "xmi").tag == "a"
    with pytest.raises(ValueError, match="xmi: XML of 11 characters, and at most 10"):
        values.an_element("<a></a>    ", "xmi")


def types_with(*layers):
    """A type system of INCEpTION's names: tokens, sentences, and layers with a label and what marks predictions."""
    types = cassis.TypeSystem()
    for name in (TOKEN, SENTENCE):
        types.create_type(name)
    for name, feature in layers:
        made = types.create_type(name)
        for own, kind in ((feature, "String"), (f"{feature}_score", "Double"), (inception.PREDICTED, "Boolean")):
            types.create_feature(made, own, f"uima.cas.{kind}")
    return types


def test_a_sentence_with_two_labels(classes, tmp_path):
    types = types_with(("webanno.custom.Sentiment", "value"))
    cas = cassis.Cas(typesystem=types, sofa_string="red car", sofa_mime="text")
    for value in ("dog", "car"):
        cas.add(types.get_type("webanno.custom.Sentiment")(begin=0, end=7, value=value))
    metadata = {"layer": "webanno.custom.Sentiment", "feature": "value", "anchoringMode": "sentences"}
    body = {"metadata": metadata, "typeSystem": types.to_xml(), "documents": [{"xmi": cas.to_xmi()}]}
    client = TestClient(app_for(TextModel(classes, str(tmp_path / "a.model"))), base_url="http://127.0.0.1:9090")
    found = client.post("/inception/train", json=body)
    assert found.status_code == 400
    assert found.json()["error"] == "'red car': labels car, dog, and the model gives one"


class EachWord:
    """A model that finds each word, or each text, and remembers what it is taught."""

    def __init__(self, *, is_sequence):
        self.is_sequence, self.taught = is_sequence, []

    def predict(self, texts):
        return [Prediction(text, 0.5, label="x") for text in texts]

    def predict_words(self, text, places):
        return Prediction(text, None, tuple(Span(a, b, "x", 0.25) for a, b in places))

    predict_each_word = predict_words

    def teach_spans(self, answers, *, senders):
        assert len(senders) == len(answers)
        self.taught += [(text[span.start : span.end], span.label) for text, spans, _ in answers for span in spans]


WORDS = st.lists(st.text(LETTERS, min_size=1, max_size=3), max_size=4)


@settings(max_examples=100, deadline=None)
@given(st.lists(WORDS, max_size=3), st.sampled_from(["tokens", "characters", "singleToken", "sentences"]))
def test_places_in_any_letters(sentences, anchoring):
    """Predictions stand where words or sentences do, and what is predicted can be learnt again."""
    types = types_with((ENTITY, "value"), (POS, "PosValue"))
    layer, feature = (POS, "PosValue") if anchoring == "singleToken" else (ENTITY, "value")
    cas = cassis.Cas(typesystem=types, sofa_string="\n".join(map(" ".join, sentences)), sofa_mime="text")
    start, expected = 0, []
    for words in sentences:
        at = start
        for word in words:
            cas.add(types.get_type(TOKEN)(begin=at, end=at + len(word)))
            at += len(word) + 1
        end = start + len(" ".join(words))
        if words:
            cas.add(types.get_type(SENTENCE)(begin=start, end=end))
            expected += [" ".join(words)] if anchoring == "sentences" else words
        start = end + 1
    metadata = {"layer": layer, "feature": feature, "anchoringMode": anchoring}
    body = {"metadata": metadata, "typeSystem": types.to_xml(), "document": {"xmi": cas.to_xmi()}}
    model = EachWord(is_sequence=anchoring != "sentences")
    answer = inception.predict(model, body)["document"]
    after = cas_of(answer, body["typeSystem"])
    found = after.select(layer)
    assert [(one.get_covered_text(), one[feature]) for one in found] == [(text, "x") for text in expected]
    assert after.sofa_string == cas.sofa_string and len(after.select(TOKEN)) == len(cas.select(TOKEN))
    if model.is_sequence:
        for one in found:
            one[inception.PREDICTED] = False
        inception.train(model, {**body, "documents": [{"xmi": after.to_xmi()}]})
        assert model.taught == [(text, "x") for text in expected]
