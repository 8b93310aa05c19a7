"""The web service of `examples/serve_tagger.py` under load: requests per second, and how long one takes.

A server of one process, and clients on the same machine that send their next request when the last is answered, over
connections that stay open. What the web itself costs shows in the requests that ask for nothing.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from common.measure import BENCHMARKS, no_gc
from common.report import Table, notes
from structsvm.datasets import fetch_conll2002
from structsvm.tasks import SequenceLabeler

EXAMPLES = BENCHMARKS.parent / "examples"
CASES = [("no sentence", 0, 1), ("one sentence", 1, 1), ("one sentence", 1, 8), ("32 sentences", 32, 1)]
PATIENCE = 60.0  # seconds until the server has to answer
COLUMNS = {
    "what": ("a request", ""),
    "clients": ("clients", ".0f"),
    "rate": ("requests / s", ".0f"),
    "median": ("median ms", ".2f"),
    "p99": ("99 % ms", ".2f"),
    "cpu": ("server's CPU ms", ".2f"),
}
NOTES = """
Spanish named entities (CoNLL-2002), words alone, C = 0.1; the sentences of the test part in turn

"predict", without a server: the same sentences, one at a time, in one process

wall times, the clients on the same two cores as the server
"""


def run(options):
    """Yield the table."""
    data = fetch_conll2002()
    sentences = [[token[0] for token in sentence] for sentence in data.X_test if sentence]
    words = [[token[0] for token in sentence] for sentence in data.X_train]
    n = 60 if options.quick else 2000
    labeler = SequenceLabeler(C=0.1, random_state=0).fit(words[: n * 4], data.y_train[: n * 4])
    rows = [predicted(labeler, sentences, n)]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "tagger.model")
        labeler.save(path)
        expected = labeler.predict(sentences[:32])
        with server(path) as (process, port):
            if ask(http.client.HTTPConnection("127.0.0.1", port), sentences[:32])[1] != expected:
                raise RuntimeError("the service answers something else than the model")
            for what, size, clients in CASES:
                rows.append({"what": what, "clients": clients, **load(process, port, sentences, size, clients, n)})
    yield Table("A web service", COLUMNS, rows, notes(NOTES))


def predicted(labeler, sentences, n):
    """Single sentences without a server."""
    labeler.predict(sentences[:1])
    with no_gc():
        begin = time.process_time()
        times = [timed(lambda s=s: labeler.predict([s])) for s in (sentences * (n // len(sentences) + 1))[:n]]
        cpu = time.process_time() - begin
    return {"what": "predict", "rate": n / sum(times), **quantiles(times), "cpu": 1e3 * cpu / n}


def timed(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def quantiles(times):
    return {"median": 1e3 * statistics.median(times), "p99": 1e3 * statistics.quantiles(times, n=100)[98]}


@contextmanager
def server(path):
    """A server of one process: the process and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "serve_tagger:app", "--port", str(port)]
    with subprocess.Popen([*command, "--log-level", "warning"], env=os.environ | {"MODEL": path}) as process:
        try:
            end = time.monotonic() + PATIENCE
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > end:
                        raise RuntimeError("the server did not start") from None
                    time.sleep(0.1)
            yield process, port
        finally:
            process.terminate()


def ask(connection, sentences):
    connection.request("POST", "/tag", json.dumps(sentences), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def load(process, port, sentences, size, clients, n):
    """`n` requests of `size` sentences each, by several clients at the same time."""
    n = max(n // max(size // 4, 1), 60)

    def client(first):
        connection, times = http.client.HTTPConnection("127.0.0.1", port), []
        for k in range(first, n, clients):
            asked = [sentences[(k * size + i) % len(sentences)] for i in range(size)]
            begin = time.perf_counter()
            status, labels = ask(connection, asked)
            times.append(time.perf_counter() - begin)
            if status != 200 or [len(y) for y in labels] != [len(x) for x in asked]:
                raise RuntimeError(f"status {status}: {labels!r:.200}")
        return times

    before, begin = cpu_of(process.pid), time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        times = [t for part in pool.map(client, range(clients)) for t in part]
    wall = time.perf_counter() - begin
    return {"rate": n / wall, **quantiles(times), "cpu": 1e3 * (cpu_of(process.pid) - before) / n}


def cpu_of(pid):
    """CPU seconds of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
