"""The page in a real browser: addresses are labelled by keyboard, taken back, resumed, exported, trained on."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from labelled_addresses import write_addresses

import structsvm
from structsvm.annotate.answers import answer_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LABELS = [
    *("number", "street", "street_type", "unit", "unit_number", "city"),
    *("state", "zip", "direction", "recipient", "box", "box_number"),
]
N = 20
HEBREW = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd"  # from right to left

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def open_browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its driver")
    started = []

    def opened(width=1280, height=900):
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", f"window-size={width},{height}"):
            options.add_argument(f"--{argument}")
        folder = str(tmp_path_factory.mktemp("downloads"))
        options.add_experimental_option("prefs", {"download.default_directory": folder})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        browser.downloads = Path(folder)
        started.append(browser)
        return browser

    yield opened
    for browser in started:
        browser.quit()


@contextmanager
def server(path, *more):
    """The command in a process of its own; yields its address."""
    command = [sys.executable, "-P", "-m", "structsvm", "annotate", str(path), "--port", "0", *more]
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=path.parent) as process:
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def until(condition, seconds=60):
    """The value of a condition once it holds: the page answers in its own time."""
    for _ in range(20 * seconds):
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("the page did not come to it")


class Page:
    """The page as one who types sees it."""

    def __init__(self, browser, address):
        self.browser = browser
        browser.get(address)
        until(lambda: self.text("counts"))

    def text(self, name):
        return self.browser.execute_script("return document.getElementById(arguments[0]).textContent", name)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        chain = ActionChains(self.browser, duration=0)
        for key in keys:
            chain.send_keys(key)
        chain.perform()

    @property
    def shown(self):
        """The text, and its spans as a screen reader reads them: words with labels and confidence."""
        return self.browser.execute_script(
            "return [...document.querySelectorAll('.word')].map(w => [w.textContent, w.getAttribute('aria-label')])"
        )

    @property
    def line(self):
        return " ".join(word for word, _ in self.shown)

    @property
    def answered(self):
        return int(self.text("counts").split()[0])

    def label(self, known):
        """Label the text that is shown by keyboard, and confirm."""
        from selenium.webdriver.common.keys import Keys

        before = self.answered
        keys = "123456789qer"
        for start, stop, label in known[self.line]:
            self.press(keys[LABELS.index(label)] * (stop - start))
        self.press(Keys.ENTER)
        until(lambda: self.answered == before + 1)


def test_labels_addresses_by_keyboard_and_learns(open_browser, tmp_path):
    path, known = write_addresses(tmp_path)
    answers = tmp_path / "addresses.txt.answers.jsonl"
    with server(path, "--labels", ",".join(LABELS)) as (address, _):
        page = Page(open_browser(), address)
        seen = []
        for _ in range(N):
            seen.append(page.line)
            page.label(known)
        stored = [json.loads(line) for line in answers.read_text().splitlines()]
        assert sum("answer" in record for record in stored) == N
        texts = path.read_text().splitlines()
        for record in stored[1:]:
            expected = answer_of({"spans": known[texts[record["item"]]]}, 100, is_sequence=True)
            assert answer_of(record["answer"], 100, is_sequence=True) == expected
        # Suggestions, with their confidence in words.
        assert "suggested by the model" in page.text("origin")
        assert any(re.fullmatch(r".+, \w+, suggested, \d+ %", name) for _, name in page.shown)
        page.press("w")
        until(lambda: re.search(r"-?[0-9]\.[0-9]{3}", page.text("reasons")))
        page.press("u")
        until(lambda: page.answered == N - 1)
        assert page.line == seen[-1]
        assert json.loads(answers.read_text().splitlines()[-1]).keys() == {"undo", "by", "time"}
        page.browser.refresh()
        until(lambda: page.text("counts"))
        assert page.answered == N - 1
        # With two browsers, each has another text.
        other = Page(open_browser(), address)
        assert other.line != page.line and other.answered == N - 1
        other.label(known)
        page.browser.refresh()
        until(lambda: page.text("counts").startswith(str(N)))
        errors = [entry for entry in page.browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert not errors
    with server(path, "--labels", ",".join(LABELS)) as (address, process):
        page = Page(open_browser(), address)
        assert page.answered == N
        for kind, ending in (("jsonl", ".jsonl"), ("conll", ".conll"), ("conllu", ".conllu"), ("model", ".model")):
            page.browser.find_element("css selector", f"[data-kind={kind}]").click()
            until((page.browser.downloads / f"addresses{ending}").exists)
        model = structsvm.load(page.browser.downloads / "addresses.model")
        right = [model.predict_spans([text.split()])[0] == [tuple(s) for s in spans] for text, spans in known.items()]
        assert sum(right) > len(right) / 2
        # A killed server loses nothing, and the page says that it is gone.
        process.kill()
        process.wait(30)
        page.press("s")
        until(lambda: "does not answer" in page.text("alert"))
    assert sum("answer" in json.loads(line) for line in answers.read_text().splitlines()) == N + 1


def test_a_key_says_that_a_label_is_wrong(open_browser, tmp_path):
    from selenium.webdriver.common.keys import Keys

    path = tmp_path / "a.txt"
    path.write_text("red car\nblue dog\n")
    with server(path, "--labels", "x,y", "--order", "file") as (address, _):
        page = Page(open_browser(), address)
        page.press("1", Keys.ARROW_LEFT, "-", "2")
        assert [name for _, name in page.shown] == ["red, not x", "car, y"]
        page.press(Keys.ENTER)
        until(lambda: page.line == "blue dog")
        page.press("u")
        until(lambda: page.line == "red car")
        assert [name for _, name in page.shown] == ["red, not x", "car, y"]
        page.press(Keys.ARROW_LEFT, " ")
        assert page.shown[0][1] == "red, x"
    records = [json.loads(line) for line in Path(f"{path}.answers.jsonl").read_text().splitlines()]
    assert records[1]["answer"] == {"spans": [[1, 2, "y"]], "complete": True, "wrong": [[0, 1, "x"]]}
    other = tmp_path / "b.txt"
    other.write_text("red car\nblue dog\n")
    with server(other, "--task", "taxonomy", "--labels", "x,y", "--order", "file") as (address, _):
        page = Page(open_browser(), address)
        page.press("1", "-")
        until(lambda: "not x" in page.text("labels"))
        page.press(Keys.ENTER)
        until(lambda: "blue dog" in page.text("text"))
    assert json.loads(Path(f"{other}.answers.jsonl").read_text().splitlines()[-1])["answer"] == {"wrong": ["x"]}


def test_labels_of_the_file_are_confirmed_also_beside_a_model(open_browser, tmp_path):
    """They stay what is shown once the model would suggest something, and have no probability."""
    from selenium.webdriver.common.keys import Keys

    path = tmp_path / "a.conll"
    path.write_text("".join(f"red O\ncar{k} B-x\n\n" for k in range(6)) + "red B-x\nhat O\n\n")
    with server(path, "--order", "file") as (address, _):
        page = Page(open_browser(), address)
        for k in range(6):
            assert page.shown[1] == [f"car{k}", f"car{k}, x, from the file"]
            page.press(Keys.ENTER)
            until(lambda k=k: page.answered == k + 1)
        assert "model of" in page.text("counts") and "from the file" in page.text("origin")
        assert [name for _, name in page.shown] == ["red, x, from the file", "hat"]
        page.press(" ", Keys.ENTER)
        until(lambda: "All texts are labelled" in page.text("text"))
    records = [json.loads(line) for line in Path(f"{path}.answers.jsonl").read_text().splitlines()]
    assert records[-1]["answer"] == {"spans": [[0, 1, "x"]], "complete": True}


def test_what_the_file_leaves_open_is_suggested(open_browser, tmp_path):
    """An answer in part stands beside the model's suggestion, and goes before it where both say something."""
    from selenium.webdriver.common.keys import Keys

    path = tmp_path / "a.jsonl"
    lines = [{"text": f"red car{k}"} for k in range(6)]
    known = {"spans": [[1, 2, "y"]], "wrong": [], "complete": False}
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"text": "red hat"} | known]))
    with server(path, "--labels", "x,y", "--order", "file") as (address, _):
        page = Page(open_browser(), address)
        for k in range(6):
            page.browser.execute_script("spans = []; paint(0, words.length)")
            page.press("1", Keys.ENTER)
            until(lambda k=k: page.answered == k + 1)
        first, second = (name for _, name in page.shown)
        assert re.fullmatch(r"red, x, suggested, \d+ %", first) and second == "hat, y, from the file"
        page.press(Keys.ENTER)
        until(lambda: "All texts are labelled" in page.text("text"))
    record = json.loads(Path(f"{path}.answers.jsonl").read_text().splitlines()[-1])
    assert sorted(record["answer"]["spans"]) == [[0, 1, "x"], [1, 2, "y"]] and record["answer"]["complete"]
    other = tmp_path / "b.jsonl"
    lines = [{"text": f"{label}es {k}", "label": label} for k in range(6) for label in "xy"]
    other.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"text": "xes", "wrong": ["z"]}]))
    with server(other, "--task", "taxonomy", "--labels", "x,y,z", "--order", "file") as (address, _):
        page = Page(open_browser(), address)
        for k in range(len(lines)):
            page.press(Keys.ENTER)
            until(lambda k=k: page.answered == k + 1)
        until(lambda: "not z" in page.text("labels"))
        page.press(Keys.ENTER)
        until(lambda: "All texts are labelled" in page.text("text"))
    assert json.loads(Path(f"{other}.answers.jsonl").read_text().splitlines()[-1])["answer"]["label"] == "x"


def test_texts_are_never_markup(open_browser, tmp_path):
    path = tmp_path / "odd.txt"
    odd = "<script>document.title='run'</script>"
    path.write_text(f"<img src=x onerror=document.title='run'> {odd} 👩‍👩‍👧 done\n{HEBREW}\n")
    with server(path, "--labels", f"{odd},b", "--order", "file") as (address, _):
        page = Page(open_browser(), address)
        assert page.line.startswith("<img") and "👩‍👩‍👧" in page.line
        page.press("1", "1")
        until(lambda: odd in page.shown[0][1])
        from selenium.webdriver.common.keys import Keys

        page.press(Keys.ENTER)
        until(lambda: page.line == HEBREW)
        # In a text from right to left the left arrow goes on.
        page.press(Keys.ARROW_LEFT, "2")
        assert page.shown[1][1] == f"{HEBREW.split()[1]}, b"
        # A label and its percentage keep their order there.
        chip = "return getComputedStyle(words[1], '::before').unicodeBidi"
        assert page.browser.execute_script(chip) == "plaintext"
        assert page.browser.title == "odd.txt · structsvm"
        page.press(Keys.ENTER)
        until(lambda: "All texts are labelled" in page.text("text"))


def test_of_a_long_text_what_is_seen_is_drawn(open_browser, tmp_path):
    """Words out of sight are laid out when they come into sight, by a leap of the keyboard say."""
    from selenium.webdriver.common.keys import Keys

    path = tmp_path / "a.txt"
    path.write_text("wide " * 10_000 + "\none two\n")
    with server(path, "--labels", "a,b", "--order", "file") as (address, _):
        page = Page(open_browser(), address)
        drawn = "return words.map(word => word.checkVisibility({contentVisibilityAuto: true}))"
        first = page.browser.execute_script(drawn)
        assert first[0] and not first[-1] and sum(first) < 2000
        page.press("1", Keys.END, "2")
        until(lambda: page.browser.execute_script(drawn)[-1])
        assert sum(page.browser.execute_script(drawn)) < 3000
        page.press(Keys.PAGE_UP, "1", Keys.HOME)
        names = [name for _, name in page.shown]
        assert {k: name for k, name in enumerate(names) if name != "wide"} == {
            0: "wide, a",
            9949: "wide, a",
            9999: "wide, b",
        }
        assert page.browser.execute_script("return document.activeElement === words[0]")
        page.press(Keys.ENTER)
        until(lambda: page.line == "one two")
    record = json.loads(Path(f"{path}.answers.jsonl").read_text().splitlines()[-1])
    assert record["answer"]["spans"] == [[0, 1, "a"], [9949, 9950, "a"], [9999, 10_000, "b"]]


def test_a_narrow_page_does_not_scroll_sideways(open_browser, tmp_path):
    path, _ = write_addresses(tmp_path, 5)
    path.write_text("wide " * 10_000 + "\n" + "w" * 500 + "\n")
    with server(path, "--labels", "a", "--order", "file") as (address, _):
        page = Page(open_browser(390, 800), address)
        assert len(page.shown) == 10_000
        page.press("1", "s")
        until(lambda: page.line.startswith("www"))
        width, seen = page.browser.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert width <= seen
