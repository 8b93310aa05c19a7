"""The commands annotate and serve; each test that starts a server ends it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import closing, contextmanager
from http.client import HTTPConnection

import pytest
from command_line import COMMAND, run
from labelled_addresses import answered, session_of, write_addresses

import structsvm

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


@contextmanager
def started(folder, *args):
    """A command in a process of its own; yields the process, and the lines that it prints first."""
    with subprocess.Popen(
        [*COMMAND, *map(str, args), "--port", "0"],
        cwd=folder,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait(30)


def ask(address, path, body=None, **headers):
    """The status and the JSON that a server answers with."""
    base, _, token = address.partition("/?token=")
    data = None if body is None else json.dumps(body).encode()
    given = {"Authorization": f"Bearer {token}"} | headers
    try:
        with urllib.request.urlopen(urllib.request.Request(base + path, data, given), timeout=60) as found:
            return found.status, json.load(found)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.fixture
def addresses(tmp_path):
    """A file with 30 answers of one, 10 of another."""
    path, known = write_addresses(tmp_path)
    session = session_of(path, order="file")
    answered(session, known, 30, "ann")
    answered(session, known, 10, "bob")
    session.store.close()
    return path


def test_exports_without_a_server(addresses, tmp_path):
    for kind in ("jsonl", "conll", "conllu"):
        run(tmp_path, "annotate", addresses, "--export", kind, "-o", f"out.{kind}")
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 30
    assert (tmp_path / "out.conll").read_text().count("\n\n") == 30
    run(tmp_path, "annotate", addresses, "--export", "model", "-o", "out.model")
    model = structsvm.load(tmp_path / "out.model")
    assert model.predict([["12", "Elm", "St"]])[0][0] == "B-number"


def test_agreement(addresses, tmp_path):
    out, _ = run(tmp_path, "annotate", addresses, "--agreement")
    assert re.fullmatch(
        r"Krippendorff's alpha: 1\.000 \(\d+ units\)\nCohen's kappa, ann and bob: 1\.000 \(\d+ units\)\n", out
    )


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["--export", "jsonl"], 2, "--export and -o go together"),
        (["-o", "x"], 2, "--export and -o go together"),
        (["--task", "taxonomy", "--agreement"], 1, "answers of the task 'sequence'"),
        (["--column", "a", "--agreement"], 1, "--column is for tables"),
        (["--annotator", "a", "--annotator", "a"], 1, "a name is given twice"),
        (["--labels", "a\tb", "--agreement"], 1, "printable"),
        (["--host", "8.8.8.8"], 1, "cannot serve on 8.8.8.8"),
        (["--answers", "no/such/folder.jsonl"], 1, "No such file or directory"),
        (["--export", "jsonl", "-o", "addresses.txt.answers.jsonl"], 2, "-o is the file of the answers"),
    ],
    ids=["no-output", "no-kind", "task", "column", "annotators", "label", "host", "folder", "answers"],
)
def test_errors_of_annotate(addresses, tmp_path, args, status, message):
    _, err = run(tmp_path, "annotate", addresses, *args, status=status)
    assert message in err


def test_errors_of_serve(tmp_path):
    structsvm.tasks.SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]]).save(tmp_path / "a.model")
    _, err = run(tmp_path, "serve", "a.model", "--host", "0.0.0.0", status=2)
    assert "lets other machines ask: give a --token" in err
    _, err = run(tmp_path, "serve", "a.model", "--token", " ", status=2)
    assert "it is empty" in err


def test_a_model_that_has_learnt_is_not_replaced_by_one_that_has_not(tmp_path):
    """The same command again, say; served itself, it goes on."""
    estimator = structsvm.tasks.SequenceLabeler(C=1.0, loss="log", random_state=0).fit([["a", "b"]], [["x", "y"]])
    estimator.save(tmp_path / "a.model")
    shutil.copy(tmp_path / "a.model", tmp_path / "learnt.model")
    _, err = run(tmp_path, "serve", "a.model", "--learn", "learnt.model", status=2)
    assert "--learn learnt.model is there" in err
    with started(tmp_path, "serve", "learnt.model", "--learn", "learnt.model") as process:
        assert process.stdout.readline().startswith("http://127.0.0.1:")


@pytest.mark.parametrize("command", ["annotate", "serve"])
def test_without_the_extra(addresses, tmp_path, command, monkeypatch):
    structsvm.tasks.SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]]).save(tmp_path / "a.model")
    monkeypatch.setitem(sys.modules, "starlette", None)
    _, err = run(tmp_path, command, addresses if command == "annotate" else "a.model", status=1)
    assert err == f"Error: structsvm {command} needs a server: pip install 'structured-svm[annotate]'\n"


def test_two_annotators_have_addresses_of_their_own(tmp_path):
    path, _ = write_addresses(tmp_path)
    with started(tmp_path, "annotate", path, "--annotator", "ann", "--annotator", "bob") as process:
        lines = [process.stdout.readline().strip().partition(": ") for _ in range(2)]
        addresses = {name: address for name, _, address in lines}
        assert addresses.keys() == {"ann", "bob"} and len(set(addresses.values())) == 2
        for name, address in addresses.items():
            assert address.startswith("http://127.0.0.1:")
            assert ask(address, "/api/state")[1]["by"] == name
        assert ask(addresses["ann"].partition("/?")[0], "/api/state")[0] == 401
        # Another process is refused while this one has the answers.
        _, err = run(tmp_path, "annotate", path, "--agreement", status=1)
        assert "another structsvm annotate has it open" in err


def test_a_killed_server_has_lost_nothing(tmp_path):
    path, known = write_addresses(tmp_path)
    with started(tmp_path, "annotate", path) as process:
        address = process.stdout.readline().strip()
        item = ask(address, "/api/next?page=1")[1]["item"]
        for _ in range(5):
            body = {"item": item["id"], "answer": {"spans": known[item["text"]]}}
            status, found = ask(address, "/api/answers?page=1", body)
            assert status == 200
            item = found["item"]
        process.send_signal(signal.SIGKILL)
    answers = tmp_path / "addresses.txt.answers.jsonl"
    answers.write_bytes(answers.read_bytes() + b'{"item": 5, "digest": "ab')
    _, err = run(tmp_path, "annotate", path, "--export", "conll", "-o", "out.conll")
    assert "was not written whole" in err
    assert (tmp_path / "out.conll").read_text().count("\n\n") == 5


def test_serves_until_it_is_told_to_end(tmp_path):
    structsvm.tasks.SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]]).save(tmp_path / "a.model")
    with started(tmp_path, "serve", "a.model", "--learn", "learnt.model") as process:
        address = process.stdout.readline().strip()
        status, found = ask(address, "/predict", {"text": "a b"})
        assert status == 200 and [span["label"] for span in found["spans"]] == ["x", "y"]
        assert ask(address, "/predict", {"text": "a b"}, Origin="http://evil.example")[0] == 403
        assert ask(address, "/predict", {"text": 3})[0] == 400
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert "Traceback" not in process.stderr.read()


def test_clients_in_java_ask_for_http_2_first(tmp_path):
    """Headers of java.net.http.HttpClient, by which INCEpTION sends its requests; also where httptools is installed."""
    structsvm.tasks.SequenceLabeler(C=1.0, random_state=0).fit([["a", "b"]], [["x", "y"]]).save(tmp_path / "a.model")
    java = {
        "Connection": "Upgrade, HTTP2-Settings",
        "HTTP2-Settings": "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
        "Upgrade": "h2c",
        "User-Agent": "Java-http-client/17.0.15",
        "Content-Type": "application/json",
    }
    with started(tmp_path, "serve", "a.model") as process:
        host = process.stdout.readline().strip().removeprefix("http://")
        with closing(HTTPConnection(host, timeout=60)) as connection:
            for text in ("a", "a b"):
                connection.request("POST", "/predict", json.dumps({"text": text}), java)
                answer = connection.getresponse()
                assert answer.status == 200 and json.load(answer)["text"] == text
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "Ctrl-C ends\ninterrupted\n"
