"""Folders that `export` writes: their files, JSON that other programs can score with, the command line."""

import json
import re
import shutil
import subprocess
import tomllib
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import runtime_models
from click.testing import CliRunner
from runtime_models import COMPILER, OTHERS, ROOT, X, fitted, sequences, shown_labels, with_tokens

import structsvm
from structsvm.cli import main
from structsvm.export import folders
from structsvm.export.page import Framed
from structsvm.tasks import LaRankClassifier, SequenceLabeler, TokenFeatures

NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def score_of(model, tokens, labels):
    """Score of labels by a model in JSON; tokens are lists of attributes."""
    number = [model["labels"].index(label) for label in labels]
    total = model["first"][number[0]] + (model["last"] or [0.0] * 9)[number[-1]]
    for t, names in enumerate(tokens):
        total += sum(model["features"].get(name, {}).get(labels[t], 0.0) for name in names)
        if t:
            pair = number[t - 1], number[t]
            total += model["transitions"][pair[0]][pair[1]]
            total += sum(model.get("pairs", {}).get(name, model["none"])[pair[0]][pair[1]] for name in names)
            if model["order"] == 2:
                total += model["triples"][number[t - 2] if t > 1 else -1][pair[0]][pair[1]]
    return total


@pytest.mark.parametrize("name", ["attributes", "bigrams", "bigrams of order 2"])
def test_json_has_all_weights(name, tmp_path):
    fitted(name).export(tmp_path, to="json")
    text = (tmp_path / "model.json").read_text(encoding="utf-8")
    model = json.loads(text, parse_constant=pytest.fail)
    model["none"] = np.zeros((len(model["labels"]),) * 2).tolist()
    assert model["format"] == "structsvm sequence weights"
    for x, best in zip(X[:9], fitted(name).predict_kbest(sequences(name)[:9], 4), strict=True):
        names = [[f"w={w}", "bias", "bias"] for w, _ in x]
        if name != "attributes":
            names = [[f"w:{w}", f"nested:length:{len(w)}"] for w, _ in x]
        for labels, score in best:
            assert score_of(model, names, list(labels)) == pytest.approx(score, abs=1e-4)


def test_json_has_a_kind_for_each_of_its_words(tmp_path):
    fitted("kinds").export(tmp_path, to="json")
    features = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["features"]
    encoder = fitted("kinds").model_.encoder
    weights, of_words = fitted("kinds").emission_, encoder.words_of_kinds
    assert len(of_words) > len(set(of_words.values())) > 1
    assert {encoder.feature_names.index(name) for name in encoder.feature_names if "kind" in name} == {
        *of_words.values()
    }
    for name, j in of_words.items():
        assert sorted(features.get(name, {}).values()) == pytest.approx(sorted(weights[j][weights[j] != 0]))


def test_json_of_masks_and_automata(tmp_path):
    fitted("masks").export(tmp_path, to="json")
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    allowed = np.array(model["allowed"]["transitions"])
    begins = [label.startswith("I-") for label in model["labels"]]
    assert not allowed[model["labels"].index("O"), begins].any()
    assert allowed.any()
    fitted("words").export(tmp_path, to="json")
    tokens = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["tokens"]
    assert tokens["kind"] == "columns"
    assert "U00:%x[-2,0]\n" in tokens["templates"]
    fitted("automaton").export(tmp_path, to="json")
    automaton = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["automaton"]
    assert len(automaton["accepting"]) == len(automaton["following"]) > 1


def test_the_command_line_exports_as_the_estimator(tmp_path):
    fitted("words").save(tmp_path / "model")
    fitted("words").export(tmp_path / "one")
    run = CliRunner().invoke(main, ["export", str(tmp_path / "model"), "--to", "c", "-o", str(tmp_path / "two")])
    assert run.exit_code == 0, run.output
    names = ["model.bin", "structsvm_runtime.c", "structsvm_runtime.h"]
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_other_models_are_refused_by_name(tmp_path):
    model = LaRankClassifier(C=1.0, random_state=0).fit(np.eye(4), list("abab"))
    model.save(tmp_path / "model")
    run = CliRunner().invoke(main, ["export", str(tmp_path / "model"), "--to", "c", "-o", str(tmp_path / "two")])
    assert run.exit_code == 1
    assert "a LaRankClassifier, and models of SequenceLabeler, TaxonomyClassifier, " in run.output
    assert not (tmp_path / "two").exists()


def test_without_zig_the_error_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(folders.shutil, "which", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'structured-svm\[wasm\]'"):
        fitted("words").export(tmp_path / "none", to="wasm")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("structure", runtime_models.SOURCES)
def test_the_source_is_as_small_as_promised(structure):
    source = folders.source_of(structure).decode("utf-8")
    assert 500 < source.count("\n") <= 1500
    assert source.isascii()
    assert {line.split()[1] for line in source.splitlines() if line.startswith("#include")} == {
        '"structsvm_runtime.h"', "<math.h>", "<stdlib.h>", "<string.h>",
    }  # fmt: skip


def test_the_second_distribution_has_the_same_version():
    project = tomllib.loads((ROOT / "runtime" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == structsvm.__version__
    assert "dependencies" not in project


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_the_example_in_c(tmp_path):
    """The program labels what it reads as Python does, as C99 and as C++."""
    fitted("words").export(tmp_path)
    source = ROOT / "examples" / "runtime" / "tag.c"
    assert source.read_text(encoding="utf-8").count("\n") <= 40
    program = tmp_path / "tag"
    files = [str(source), str(tmp_path / "structsvm_runtime.c"), "-I", str(tmp_path), "-lm", "-o", str(program)]
    options = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
    subprocess.run([COMPILER, *options, *files], check=True)
    x = sequences("words")[0]
    command = [str(program), str(tmp_path / "model.bin"), *x]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == [
        f"{word}\t{label}" for word, label in zip(x, fitted("words").predict([x])[0], strict=True)
    ]
    bad = subprocess.run([str(program), str(source)], capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stderr) == (1, f"{source}: not a sound model\n")


# ---- JavaScript ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """The folder of a model of sequences or segments, with their runtime as WebAssembly."""
    if NODE is None:
        pytest.skip("needs node")
    try:
        folders.zig()
    except ImportError as error:
        pytest.skip(str(error))

    @cache
    def exported(name):
        folder = tmp_path_factory.mktemp("wasm")
        fitted(name).export(folder, to="wasm")
        return folder

    return exported


@pytest.fixture
def exported(folder_of):
    return folder_of("words")


def node(folder, script, *arguments):
    path = folder / "test.mjs"
    path.write_text('import { load } from "./structsvm.mjs";\nimport { readFileSync } from "node:fs";\n' + script)
    return subprocess.run([NODE, str(path), *map(str, arguments)], capture_output=True, text=True, check=False)


COMPARE = """
const tagger = await load(readFileSync(process.argv[2]));
for (const x of JSON.parse(readFileSync(process.argv[3], "utf-8"))) {
  const best = tagger.kbest(x, 3).map(({ labels, score }) => [labels, score]);
  console.log(JSON.stringify([tagger.predict(x), best, tagger.labels]));
}
"""


@pytest.mark.parametrize("name", runtime_models.MODELS)
def test_javascript_labels_as_python_does(folder_of, tmp_path, name):
    exported = folder_of("segments" if name in runtime_models.SEGMENTS else "words")
    fitted(name).export(tmp_path)
    X = sequences(name)[-12:]
    (tmp_path / "X.json").write_text(json.dumps(X), encoding="utf-8")
    done = node(exported, COMPARE, tmp_path / "model.bin", tmp_path / "X.json")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    labels, best = fitted(name).predict(X), fitted(name).predict_kbest(X, 3)
    assert found == [
        [list(y), [[list(labels), score] for labels, score in ranked], shown_labels(fitted(name))]
        for y, ranked in zip(labels, best, strict=True)
    ]


def test_javascript_sees_the_texts_of_features_that_python_does(folder_of, tmp_path):
    model, X = with_tokens(lambda word: {"w": word})
    model.export(tmp_path)
    X = [[X[0][0], token, X[0][1]] for token in OTHERS]
    (tmp_path / "X.json").write_text(json.dumps([*X, [["w:san"], ["a"]]]), encoding="utf-8")
    done = node(folder_of("segments"), COMPARE, tmp_path / "model.bin", tmp_path / "X.json")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line)[1] for line in done.stdout.splitlines()]
    best = model.predict_kbest([*X, [["w:san"], ["a"]]], 3)
    assert found == [[[list(labels), score] for labels, score in ranked] for ranked in best]
    for tokens in ([X[0][0], ["w=san"]], [{}, X[0][0], ["a", "w=b"]]):
        (tmp_path / "X.json").write_text(json.dumps([tokens]), encoding="utf-8")
        done = node(folder_of("segments"), COMPARE, tmp_path / "model.bin", tmp_path / "X.json")
        assert "lists of attributes for a model of segments of dicts, or dicts for one of lists" in done.stderr


ODD_LETTERS = ["\ud83d", "\ude00", "\ud800a", "\ufeffa", "a\u200b", "a\0", "\0", "", "\ufffd", "\U0001f600", "é\ud83d"]


def test_letters_and_labels_are_pythons_in_javascript(folder_of, tmp_path):
    """Halves of pairs, zeros, marks of byte order and letters without width, in words and in labels."""
    X = [ODD_LETTERS, ODD_LETTERS[::-1], ODD_LETTERS[::2] + ODD_LETTERS[1::2]]
    y = [[f"{letter}x" for letter in x] for x in X]
    model = SequenceLabeler(C=1.0, loss="log", random_state=0).fit(X * 3, y * 3)
    model.export(tmp_path)
    (tmp_path / "X.json").write_text(json.dumps(X), encoding="utf-8")
    done = node(folder_of("words"), COMPARE, tmp_path / "model.bin", tmp_path / "X.json")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [labels for labels, _, _ in found] == model.predict(X) == y
    best = model.predict_kbest(X, 3)
    assert [ranked for _, ranked, _ in found] == [[[list(y_), score] for y_, score in ranked] for ranked in best]
    assert all(shown == model.classes_.tolist() for _, _, shown in found)


FORMS = [
    {"w": "a", "n": {"length": "1", "m": {"deep": True}}, "list": ["a", "b:c", "a"], "v": 0.5, "no": False, "": "e"},
    {"w": "", "n": {"": "", "length": 2}, "list": [1, "a", {"x": "y"}, [2.5]], "v": -1, "w:a": 1, "é": "\ud800"},
    {"w:a": True, "n:length": "1", "n": ["length:1"], "list[0]": "a", "no": True, "empty": {}, "none": []},
    ["w:a", "n:length:1", "v", "", "é:\ud800", "w:a"],
    {},
    [],
]


def without_numbers(form):
    """A token with 1 for each number."""
    if isinstance(form, dict):
        return {name: without_numbers(value) for name, value in form.items()}
    if isinstance(form, list):
        return [without_numbers(value) for value in form]
    return form if isinstance(form, str) else 1


AGAIN = """
const [bytes, given] = process.argv.slice(2).map((path) => readFileSync(path));
const X = JSON.parse(given), tagger = await load(bytes), found = X.map((x) => tagger.kbest(x, 3));
for (const x of [X[0].slice().reverse(), ...X]) tagger.predict(x);
const fresh = await Promise.all(X.map(async (x) => (await load(bytes)).kbest(x, 3)));
if (JSON.stringify(X.map((x) => tagger.kbest(x, 3))) !== JSON.stringify(found)) throw new Error("not as before");
if (JSON.stringify(fresh) !== JSON.stringify(found)) throw new Error("not as at first");
console.log(JSON.stringify(found.map((best) => best.map(({ labels, score }) => [labels, score]))));
"""


def test_features_in_javascript_are_pythons(folder_of, tmp_path):
    """Texts of names and values are remembered from call to call."""
    X = [FORMS, FORMS[::-1], [form for form in FORMS if form], FORMS[:2] * 3]
    y = [[f"{k % 4}" for k, _ in enumerate(x)] for x in X]
    seen = [[without_numbers(form) for form in x] for x in X]  # trained on numbers, a model has units, which C has not
    features = TokenFeatures(bigrams=["w", "n"], end=True)
    model = SequenceLabeler(C=1.0, loss="log", features=features, random_state=0).fit(seen[1:] * 2, y[1:] * 2)
    model.export(tmp_path)
    (tmp_path / "X.json").write_text(json.dumps(X), encoding="utf-8")
    done = node(folder_of("words"), AGAIN, tmp_path / "model.bin", tmp_path / "X.json")
    assert done.returncode == 0, done.stderr
    best = model.predict_kbest(X, 3)
    assert json.loads(done.stdout) == [[[list(labels), score] for labels, score in ranked] for ranked in best]


MANY = """
let memory;
const own = WebAssembly.instantiate;
WebAssembly.instantiate = async (...all) => {
  const made = await own(...all);
  memory = made.exports.memory;
  return made;
};
const bytes = readFileSync(process.argv[2]), tagger = await load(bytes), sizes = [];
const words = (round, s) => Array.from({ length: 100 }, (_, t) => `w${t % 7}${"x".repeat(t % 90)}${round}.${s}`);
for (let round = 0; round < 9; round++) {
  for (let s = 0; s < 200; s++) tagger.predict(words(round, s));
  sizes.push(memory.buffer.byteLength);
}
const x = ["dog", ...words(3, 4), "dog"], fresh = await load(bytes);
console.log(sizes[8] === sizes[3], JSON.stringify(tagger.kbest(x, 2)) === JSON.stringify(fresh.kbest(x, 2)));
"""


def test_texts_in_javascript_are_forgotten(exported):
    """20,000 new words in each round, of 1 MB, take no more memory after some."""
    done = node(exported, MANY, exported / "model.bin")
    assert done.stdout == "true true\n", done.stderr


REFUSALS = """
const model = readFileSync(process.argv[2]);
const tagger = await load(model.buffer.slice(model.byteOffset, model.byteOffset + model.length));
const failed = async (work) => { try { await work(); return "none"; } catch (error) { return error.message; } };
console.log(await failed(() => load(model.subarray(1))));
console.log(await failed(() => tagger.predict(["a", 3])));
console.log(await failed(() => tagger.kbest(["a"], 0)));
const rows = tagger.probability(["a", "b"]);
console.log(rows.length, rows.every((row) => Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-5));
"""


def test_javascript_refuses_what_is_wrong(exported):
    done = node(exported, REFUSALS, exported / "model.bin")
    assert done.stdout.splitlines() == [
        "not a complete, sound model of the runtime",
        "token 1 must be a string, or an array of strings: the model reads 1",
        "k must be an integer of at least 1, got 0",
        "2 true",
    ], done.stderr


HOSTILE = """
const own = TextEncoder.prototype.encodeInto;
TextEncoder.prototype.encodeInto = function (text, to) {  // Node writes nothing to views of more than 2**31 bytes
  if (to.length > 3 * text.length) throw new Error("a view of all memory");
  return own.call(this, text, to);
};
const [columns, attributes] = await Promise.all(process.argv.slice(2).map((path) => load(readFileSync(path))));
const failed = async (work) => { try { return await work(); } catch (error) { return error.message; } };
const x = ["a", "b", "a"], before = JSON.stringify([columns.predict(x), columns.kbest(x, 3)]);
for (const model of [undefined, null, 5, "abc", [1, 2], {}]) console.log(await failed(() => load(model)));
for (const tokens of [undefined, "ab", new Set("ab"), { length: 1, 0: "a" }, ["a", , "b"], new Array(2)]) {
  for (const verb of ["predict", "probability"]) console.log(await failed(() => columns[verb](tokens)));
  console.log(await failed(() => columns.kbest(tokens, 2)));
}
const empty = [["a", , "b"], Promise.resolve(1), { w: new Number(3) }, { w: /x/ }, { w: [1, , "x"] }];
const odd = [new Map([["w", "x"]]), new Date(), new Uint8Array(2), { w: new Map() }, { w: NaN }, { w: 1e39 }, ...empty];
for (const token of [...odd, , { w: 1n }]) console.log(await failed(() => attributes.predict(["w", token].slice(1))));
const again = async () => JSON.stringify([columns.predict(x), columns.kbest(x, 3)]);
const after = await Promise.all(Array.from({ length: 50 }, again));
console.log(after.every((one) => one === before));
"""


def test_javascript_refuses_what_is_no_array_of_tokens(exported, tmp_path):
    """Holes of arrays, and lengths that are no numbers, must not become texts that nothing was written to."""
    fitted("dicts").export(tmp_path)
    done = node(exported, HOSTILE, exported / "model.bin", tmp_path / "model.bin")
    found = done.stdout.splitlines()
    wanted = ["model must be an ArrayBuffer, or a view of one"] * 6
    wanted += ["a sequence must be an array of tokens"] * 12
    wanted += [f"token {t} must be a string, or an array of strings: the model reads 1" for t in (1, 1, 1, 0, 0, 0)]
    no_token = "token 0 must be an array of attributes or an object of features"
    no_value = "token 0: feature w must be a number, a string, an array or an object"
    finite = "token 0: feature w must be finite"
    no_hole = no_value.replace(" w ", " w[1] ")
    assert found == [
        *wanted,
        *[no_token] * 3,
        no_value,
        finite,
        finite,
        *[no_token] * 2,
        *[no_value] * 2,
        no_hole,
        no_token,
        no_value,
        "true",
    ], done.stderr


def test_javascript_is_small(exported):
    sizes = [(exported / name).stat().st_size for name in ("structsvm.mjs", "structsvm.wasm")]
    assert sum(sizes) < 60_000
    assert sorted(path.name for path in Path(exported).iterdir() if path.name != "test.mjs") == [
        "model.bin", "structsvm.d.mts", "structsvm.mjs", "structsvm.wasm",
    ]  # fmt: skip


def test_the_example_in_node(exported):
    script = ROOT / "examples" / "runtime" / "tag.mjs"
    assert script.read_text(encoding="utf-8").count("\n") <= 40
    shutil.copy(script, exported)
    x = sequences("words")[0]
    command = [NODE, str(exported / "tag.mjs"), *x]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == [
        f"{word}\t{label}" for word, label in zip(x, fitted("words").predict([x])[0], strict=True)
    ]


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_the_example_in_a_browser(exported, tmp_path):
    page = ROOT / "examples" / "runtime" / "tag.html"
    assert page.read_text(encoding="utf-8").count("\n") <= 40
    shutil.copytree(exported, tmp_path / "served")
    shutil.copy(page, tmp_path / "served")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path / "served")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
        url = f"http://127.0.0.1:{server.server_port}/tag.html"
        command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'profile'}", url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        server.shutdown()
        thread.join()
    words = ["San", "Diego", "is", "warm"]
    wanted = " ".join(f"{word}/{label}" for word, label in zip(words, fitted("words").predict([words])[0], strict=True))
    assert f'<p id="labels">{wanted}</p>' in done.stdout, done.stderr[-500:]


def test_a_page_is_for_words():
    with pytest.raises(ValueError, match="a page labels words"):
        fitted("dicts").export("none", to="page")
    assert not Path("none").exists()


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_page_labels_in_a_browser_from_a_file(exported, tmp_path):
    fitted("words").export(tmp_path, to="page")
    text = (tmp_path / "tagger.html").read_text(encoding="utf-8")
    words = re.search(r"<textarea[^>]*>([^<]*)<", text)[1].split()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "tagger.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r'class="token[^"]*"[^>]*>([^<]*)<small[^>]*>(\S+) ', done.stdout)
    assert len(words) == 6
    assert found == list(zip(words, fitted("words").predict([words])[0], strict=True)), done.stderr[-500:]
    rows = re.sub("[\u2068\u2069]", "", done.stdout.partition('<tbody id="why">')[2].partition("</tbody>")[0])
    shown = re.findall(r"<td[^>]*>([^<]*): (\S+)</td><td[^>]*>([^<]*)</td>", rows)
    assert shown == reasons(fitted("words"), words) and len(shown) > 1


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_page_says_what_its_model_refuses(exported, tmp_path):
    X, y = [["a", "b", "a"]] * 3, [["x", "y", "z"]] * 3
    model = SequenceLabeler(C=0.1, random_state=0, constraints="x y z").fit(X, y)
    model.export(tmp_path, to="page")  # its first text has the two words that the model knows
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "tagger.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    alert = '<p id="refused" role="alert">the model\'s constraints leave no labelling'
    assert alert in done.stdout, done.stderr[-500:]
    assert re.search(r'<p id="labels"[^>]*></p>', done.stdout)


def reasons(model, words):
    """The rows of the page that say how probable a label is without words that make it more so by .02."""
    labels = model.predict([words])[0]
    columns = [model.classes_.tolist().index(label) for label in labels]
    each = range(len(words))
    whole, *others = model.predict_marginals([words, *([*words[:i], "", *words[i + 1 :]] for i in each)])
    rows = []
    for t, column in enumerate(columns):
        falls = sorted(((whole - others[i])[t, column], -i) for i in each)[::-1]
        parts = [
            f"{np.floor(100 * others[-i][t, column] + 0.5):.0f} % without “{words[-i]}”"
            for fall, i in falls[:2]
            if fall >= 0.02
        ]
        rows += [(words[t], labels[t], ", ".join(parts))] if parts else []
    return rows


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_framed_page_labels_in_a_browser_from_a_file(exported, tmp_path):
    frame = Framed.of(fitted("words"))._repr_html_()
    assert len(frame) < 1_000_000
    # The frame's document is another one: its text is brought to the page that is dumped.
    script = "setInterval(() => out.textContent = document.querySelector('iframe').contentDocument.body.innerText, 100)"
    (tmp_path / "page.html").write_text(
        f"<!doctype html>{frame}<p id=out></p><script>{script}</script>", encoding="utf-8"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "page.html").as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = done.stdout.partition("<p id=")[2]
    labels = fitted("words").predict(
        [re.search(r"<textarea[^>]*>([^<]*)<", Framed.of(fitted("words")).page)[1].split()]
    )[0]
    assert len(labels) == 6
    assert re.findall(r"(\S+) \d+ %(?! without)", found) == list(labels), done.stderr[-500:]
