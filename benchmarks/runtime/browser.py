"""Chromium as a program that labels: it opens a page of a folder, which sends back what it measured."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from threading import Thread

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMIT = 300  # seconds
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run")


class Folder(SimpleHTTPRequestHandler):
    """The files of a folder; what is posted goes to a queue."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def __init__(self, *arguments, answers, **keywords):
        self.answers = answers
        super().__init__(*arguments, **keywords)

    def do_POST(self):
        self.answers.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        """Print nothing per request."""


def measured_in_browser(folder):
    """Return what the page of a folder measured; RuntimeError if it does not answer in time, or failed."""
    answers: Queue[bytes] = Queue()
    handler = partial(Folder, directory=str(folder), answers=answers)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, tempfile.TemporaryDirectory() as profile:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/tag.html"
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-port=0", address]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            found = json.loads(answers.get(timeout=LIMIT))
        except Empty:
            raise RuntimeError(f"the browser has not answered within {LIMIT} s") from None
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
    if "error" in found:
        raise RuntimeError(f"in the browser: {found['error']}")
    return found
