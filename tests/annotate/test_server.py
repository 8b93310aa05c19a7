"""The server of the page: who may ask, what comes back, what a page cannot do."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import pytest
from labelled_addresses import session_of, write_addresses

pytest.importorskip("starlette")
pytest.importorskip("httpx2")

from starlette.testclient import TestClient

from structsvm.annotate.server import app_for
from structsvm.serve.guard import MAX_BODY, Guard, Refused

ADDRESS = "http://127.0.0.1:8765"
TOKENS = {"secret-of-eve": "eve", "secret-of-bob": "bob"}
ASSETS = ("index.html", "page.css", "page.js")


@pytest.fixture
def session(tmp_path):
    path, _ = write_addresses(tmp_path)
    session = session_of(path, labels=["number", "street"])
    yield session
    session.store.close()


@pytest.fixture
def app(session):
    return app_for(session, TOKENS)


def client_of(app, token="secret-of-eve", **headers):
    given = {"Authorization": f"Bearer {token}"} if token else {}
    return TestClient(app, base_url=ADDRESS, headers=given | headers)


@pytest.fixture
def eve(app):
    return client_of(app)


def test_the_page_and_its_files(app):
    client = client_of(app, None)
    for path in ("/?token=secret-of-eve", "/page.js", "/page.css"):
        found = client.get(path)
        assert found.status_code == 200
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert found.headers["referrer-policy"] == "no-referrer"
    assert client.get("/").status_code == 401


def test_the_page_asks_no_other_server_and_makes_no_markup():
    texts = {name: files("structsvm.annotate").joinpath("page", name).read_text() for name in ASSETS}
    assert sum(len(text.encode()) for text in texts.values()) < 40_000
    for text in texts.values():
        assert not re.search(r"(https?:)?//(?!www\.w3\.org/2000/svg)[a-z0-9]+\.[a-z]", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", texts["page.js"])
    assert not re.search(r"\son\w+=|style=|<script(?! src=)", texts["index.html"])


@pytest.mark.parametrize("token", [None, "", "secret", "secret-of-evé"], ids=["none", "empty", "wrong", "foreign"])
@pytest.mark.parametrize("path", ["/api/state", "/api/next", "/api/export/jsonl", "/"])
def test_without_the_token(app, token, path):
    client = client_of(app, None)
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
    found = client.get(path, headers=headers)
    assert found.status_code == 401 and "token" in found.json()["error"]


def test_a_page_cannot_post_with_the_token_in_the_address(app):
    """Such a request a form of another page could send."""
    assert client_of(app, None).post("/api/undo?token=secret-of-eve").status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ({"Host": "evil.example:8765"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "8.8.8.8"}, 421),
        ({"Origin": ADDRESS}, 200),
        ({"Host": "localhost:8765"}, 200),
        ({"Host": "[::1]:8765"}, 200),
    ],
    ids=lambda value: str(value),
)
def test_other_origins_and_hosts(eve, headers, status):
    assert eve.get("/api/state", headers=headers).status_code == status


def test_bound_to_all_addresses_it_answers_to_addresses_alone(session):
    client = client_of(app_for(session, TOKENS, host="0.0.0.0"))
    assert client.get("/api/state", headers={"Host": "192.168.1.2:8765"}).status_code == 200
    assert client.get("/api/state", headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("host", ["mybox.lan", "MyBox.LAN:80"])
def test_names_of_machines_have_no_case(session, host):
    client = client_of(app_for(session, TOKENS, host="MyBox.lan"))
    assert client.get("/api/state", headers={"Host": host}).status_code == 200
    guard = Guard(None, names=["Container"])
    guard._check_host({"host": "container:9090"})
    with pytest.raises(Refused):
        guard._check_host({"host": "other"})


@pytest.mark.parametrize("length", ["\u00b2", "-1", "", "9" * 5000], ids=["digit", "negative", "none", "long"])
def test_lengths_that_are_none(eve, length):
    found = eve.post("/api/undo", content=b"{}", headers={"Content-Length": length.encode("latin-1")})
    assert found.status_code == 413


def test_bodies_are_bounded(eve, session):
    assert eve.post("/api/answers", content=b" " * (MAX_BODY + 1)).status_code == 413
    parts = (b"x" * 10_000 for _ in range(MAX_BODY // 10_000 + 2))
    assert eve.post("/api/answers", content=parts).status_code == 413
    assert not session.entries


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"3",
        b"\xff",
        b"[" * 100_000,
        b'{"item": 1e999, "answer": {}}',
        b'{"item": 0}',
        b'{"item": "0", "answer": null}',
        b'{"item": 0, "answer": {"spans": [[0, 1, NaN]]}}',
        b'{"item": true, "answer": null}',
        b'{"item": 123456, "answer": null}',
    ],
    ids=lambda body: body[:12].decode("latin-1"),
)
def test_bad_requests(eve, session, body):
    found = eve.post("/api/answers", content=body)
    assert found.status_code == 400 and found.json()["error"]
    assert not session.entries


@pytest.mark.parametrize(
    "path",
    [
        *("items?offset=-1", "items?limit=x", "items/99999", "items/-1", "items/x", f"items/{'9' * 5000}"),
        *("why/0", f"why/{'9' * 5000}", "export/pdf", "export/model"),
    ],
    ids=lambda path: path[:20],
)
def test_bad_addresses(eve, path):
    assert eve.get(f"/api/{path}").status_code == 400


def test_answers_are_stored_before_the_page_hears_of_them(eve, session, tmp_path):
    first = eve.get("/api/next?page=1").json()["item"]
    assert [first["text"][a:b] for a, b in first["words"]] == first["text"].split()
    found = eve.post(
        "/api/answers?page=1", json={"item": first["id"], "answer": {"spans": [[0, 1, "<script>alert(1)</script>"]]}}
    )
    assert found.json()["state"]["answered"] == 1 and found.json()["item"]["id"] != first["id"]
    assert found.json()["state"]["labels"] == ["number", "street", "<script>alert(1)</script>"]
    record = json.loads((tmp_path / "addresses.txt.answers.jsonl").read_text().splitlines()[-1])
    assert record["by"] == "eve" and record["answer"]["spans"] == [[0, 1, "<script>alert(1)</script>"]]
    undone = eve.post("/api/undo", json={}).json()
    assert undone["item"]["id"] == first["id"] and undone["item"]["answer"]["spans"] == record["answer"]["spans"]
    assert undone["state"]["answered"] == 0
    nothing = eve.post("/api/undo", json={}).json()
    assert nothing["item"] is None and not nothing["undone"] and undone["undone"]


def test_an_undo_is_reserved_for_its_page(eve):
    first = eve.get("/api/next?page=1").json()["item"]
    eve.post("/api/answers?page=1", json={"item": first["id"], "answer": {"spans": []}})
    assert eve.post("/api/undo?page=1", json={}).json()["item"]["id"] == first["id"]
    assert eve.get("/api/next?page=2").json()["item"]["id"] != first["id"]


def test_a_file_of_answers_that_is_gone_is_said(eve, session, tmp_path):
    (tmp_path / "addresses.txt.answers.jsonl").rename(tmp_path / "elsewhere")
    found = eve.post("/api/answers", json={"item": 0, "answer": {"spans": []}})
    assert found.status_code == 507 and "was moved, deleted or replaced" in found.json()["error"]
    (tmp_path / "elsewhere").rename(tmp_path / "addresses.txt.answers.jsonl")
    assert eve.post("/api/answers", json={"item": 0, "answer": {"spans": []}}).json()["state"]["answered"] == 1


def test_a_file_whose_name_is_no_text(tmp_path):
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), b"\xe9t\xe9.txt"))
    with open(path, "w") as file:
        file.write("one\ntwo\n")
    session = session_of(path)
    client = client_of(app_for(session, TOKENS))
    with open(path, "a") as file:
        file.write("three\n")
    found = client.get("/api/state").json()
    assert found["name"] == "?t?.txt" and "?t?.txt has changed" in found["notes"][0]
    session.store.close()


def test_a_full_disk_is_said(eve, session, monkeypatch):
    def full(record):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session.store, "append", full)
    found = eve.post("/api/answers", json={"item": 0, "answer": {"spans": []}})
    assert found.status_code == 507 and "No space left" in found.json()["error"]
    assert eve.get("/api/state").json()["answered"] == 0


def test_two_annotators_and_their_agreement(app, eve):
    bob = client_of(app, "secret-of-bob")
    for client, spans in ((eve, [[0, 1, "number"], [1, 2, "street"]]), (bob, [[0, 1, "number"], [1, 3, "street"]])):
        assert client.post("/api/answers", json={"item": 5, "answer": {"spans": spans}}).status_code == 200
    found = bob.get("/api/agreement").json()
    assert found["units"] == 3 and "bob and eve" in found["text"]
    assert bob.get("/api/state").json()["by"] == "bob" and bob.get("/api/items/5").json()["answer"]["spans"][1] == [
        1,
        3,
        "street",
    ]


def test_two_clients_at_once(app, session):
    """Each answer of both is there once, and no text was given to both."""

    def work(name):
        client, given = client_of(app), []
        item = client.get(f"/api/next?page={name}").json()["item"]
        for _ in range(20):
            given.append(item["id"])
            answer = {"spans": [[0, 1, "number"], [1, 2, "street"]]}
            item = client.post(f"/api/answers?page={name}", json={"item": item["id"], "answer": answer}).json()["item"]
        return given

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(work, "ab")
    assert len({*one, *other}) == 40 == len(session.entries)
    assert sorted(session.answers()) == sorted([*one, *other])


def test_pages_ask_while_the_model_learns(app, session):
    """Whatever is read while answers come in is whole: nothing is half learnt, no list changes while it is read."""
    paths = ["state", "curve", "agreement", "items", "items/3", "export/jsonl", "export/conll", "next?page=r"]

    def write(token):
        client = client_of(app, token)
        for k in range(12):
            spans = [[0, 1, "number"], [1, 2, "street"]][: 1 + k % 2]
            assert client.post("/api/answers", json={"item": k, "answer": {"spans": spans}}).status_code == 200
            assert k % 4 or client.post("/api/undo", json={}).status_code == 200

    def read(_):
        client = client_of(app)
        return {client.get(f"/api/{path}").status_code for _ in range(6) for path in paths}

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, token) for token in TOKENS]
        assert set().union(*pool.map(read, range(2))) == {200}
        for writer in writers:
            writer.result()
    assert sorted(session.answers()) == [k for k in range(12) if k % 4]


def test_slices_of_the_texts(eve):
    found = eve.get("/api/items?offset=50&limit=5").json()
    assert [row["id"] for row in found["items"]] == [50, 51, 52, 53, 54] and found["total"] == 60
    assert len(eve.get("/api/items?limit=999999").json()["items"]) == 60


def test_downloads(eve):
    eve.post("/api/answers", json={"item": 0, "answer": {"spans": [[0, 1, "number"]], "complete": False}})
    found = eve.get("/api/export/conll")
    assert found.headers["content-disposition"] == 'attachment; filename="addresses.conll"'
    assert found.content == b"" and "1 partial answers" in found.headers["x-left-out"]


def test_labels_are_added(eve):
    assert eve.post("/api/labels", json={"label": " new "}).json()["labels"] == ["number", "street", "new"]
    assert eve.post("/api/labels", json={"label": "new"}).json()["labels"] == ["number", "street", "new"]
    assert eve.post("/api/labels", json={"label": ""}).status_code == 400


def test_other_kinds_of_connections_pass_the_guard():
    """It is about requests alone: the start of the server is one more message."""
    seen = []

    async def inner(scope, receive, send):
        seen.append(scope["type"])

    import asyncio

    asyncio.run(Guard(inner)({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]
