"""TypeScript's declarations of the module in JavaScript: its names and members, and types that a program relies on."""

import json
import re
import shutil
import subprocess

import pytest
from runtime_models import NODE, RUNTIME

TSC = shutil.which("tsc")
NAMES = """
import * as module from "./structsvm.mjs";
const members = ({ prototype }) => Object.getOwnPropertyNames(prototype ?? {}).sort();
console.log(JSON.stringify(Object.fromEntries(Object.entries(module).map(([name, one]) => [name, members(one)]))));
"""
PROGRAM = """
import { load, Tagger } from "./structsvm.mjs";
import type { Arc, Classifier, Labelling, Parser, Ranked, Tree } from "./structsvm.mjs";
const bytes = new Uint8Array(8);
const tagger: Tagger = await load(bytes.buffer);
const labels: string[] = tagger.predict([["a"], { w: "x", nested: { deep: [1, "y", true] } }]);
const labellings: Labelling[] = tagger.kbest(["San", "Diego"], 3);
const rows: Float32Array[] = tagger.probability(["San"]);
const classifier = await load<Classifier>(bytes, { wasm: new WebAssembly.Module(bytes) });
const ranked: Ranked[] = classifier.kbest([1, 2], 2);
const parser = await load<Parser>(new DataView(bytes.buffer), { wasm: new URL("file:///x.wasm") });
const arcs: Arc[] = parser.predict([["the", "DET"], "dog", { form: "barks", upos: "VERB" }]);
const trees: Tree[] = parser.kbest(["a"], 2);
// @ts-expect-error
new Tagger();
// @ts-expect-error
tagger.predict("San Diego");
// @ts-expect-error
await load("model.bin");
// @ts-expect-error
parser.predict([{ upos: "VERB" }]);
// @ts-expect-error
tagger.labels = [];
export { labels, labellings, rows, ranked, arcs, trees };
"""


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_what_is_declared_is_there(tmp_path):
    shutil.copy(RUNTIME / "structsvm.mjs", tmp_path)
    (tmp_path / "names.mjs").write_text(NAMES, encoding="utf-8")
    done = subprocess.run([NODE, str(tmp_path / "names.mjs")], capture_output=True, text=True, check=True)
    text = (RUNTIME / "structsvm.d.mts").read_text(encoding="utf-8")
    classes = re.findall(r"^export class (\w+) \{\n(.*?)^\}", text, flags=re.MULTILINE | re.DOTALL)
    members = re.compile(r"^  (?:private )?(\w+)\(", flags=re.MULTILINE)
    declared = {name: sorted(members.findall(body)) for name, body in classes}
    assert json.loads(done.stdout) == declared | {"load": []}
    assert declared == {
        name: ["constructor", "kbest", "predict", "probability"] for name in ("Tagger", "Classifier", "Parser")
    }


@pytest.mark.skipif(TSC is None, reason="needs tsc")
def test_programs_have_types(tmp_path):
    shutil.copy(RUNTIME / "structsvm.d.mts", tmp_path)
    (tmp_path / "program.mts").write_text(PROGRAM, encoding="utf-8")
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    done = subprocess.run([TSC, *options, "program.mts"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
