"""The commands for semantic parsing: in this process, and in one of its own where that matters."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from command_line import COMMAND, run

import structsvm
from structsvm.datasets import make_ambig_house, make_queries
from structsvm.metrics import alignment_error, meaning_scores
from structsvm.structures.bag_lines import read_bags, write_bags


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("semantics")
    house = make_ambig_house(600, 1, random_state=0)
    write_bags(folder / "train.jsonl", house.sentences, house.bags)
    house = make_ambig_house(100, 0, random_state=1)
    write_bags(folder / "test.jsonl", house.sentences, house.meanings, house.alignment)
    out, _ = run(folder, "train", "semantics", "train.jsonl", "--model", "house.model", "--method", "ospas")
    assert "600 sentences" in out and "58 symbols" in out and "1 pass (max_iter)" in out and "house.model" in out
    return folder


def test_the_model_is_that_of_the_estimator(data):
    lines = read_bags(data / "train.jsonl")
    parser = structsvm.tasks.SemanticParser(method="ospas", random_state=0).fit(lines.sentences, lines.bags)
    loaded = structsvm.load(data / "house.model")
    np.testing.assert_array_equal(loaded.model_.symbols.weights, parser.model_.symbols.weights)
    assert loaded.get_params() == parser.get_params()


def test_evaluate(data):
    scores = json.loads(run(data, "evaluate", "house.model", "test.jsonl", "--json")[0])
    lines = read_bags(data / "test.jsonl")
    expected = meaning_scores(lines.bags, structsvm.load(data / "house.model").predict(lines.sentences))
    assert scores["f1"] == expected.f1 > 0.9 and scores["precision"] == expected.precision
    assert 0.0 <= scores["alignment_error"] < 0.2 and scores["n_sentences"] == 100
    assert f"F1 {100 * expected.f1:.2f}; alignment error" in run(data, "evaluate", "house.model", "test.jsonl")[0]
    bare = "\n".join(json.dumps({"sentence": s, "bag": b}) for s, b in zip(lines.sentences, lines.bags, strict=True))
    again = json.loads(run(data, "evaluate", "house.model", "-", "--json", text=bare)[0])
    assert again == scores | {"alignment_error": None}


def test_predict(data, tmp_path):
    lines = read_bags(data / "test.jsonl")
    text = "\n".join(json.dumps({"sentence": s}) for s in lines.sentences) + "\n"
    out, _ = run(data, "predict", "house.model", "-", text=text)
    rows = [json.loads(line) for line in out.splitlines()]
    parser = structsvm.load(data / "house.model")
    assert [row["meaning"] for row in rows] == parser.predict(lines.sentences)
    assert [row["alignment"] for row in rows] == [
        [symbol for _, symbol in pairs] for pairs in parser.predict_alignment(lines.sentences)
    ]
    run(tmp_path, "predict", data / "house.model", data / "test.jsonl", "-o", "p.jsonl")
    assert (tmp_path / "p.jsonl").read_text() == out


def test_inspect(data):
    out, _ = run(data, "inspect", "house.model", "--label", "move", "--label", "john")
    assert "58 symbols" in out and "move (2 arguments): " in out and "goes 0." in out and "john: john" in out
    _, err = run(data, "inspect", "house.model", "--label", "nothing", status=1)
    assert "'nothing' is not one of the symbols" in err


def test_units_that_were_found_are_shown(tmp_path):
    """Terms as leaves, names of a key by what they look like, and terms of a key around others by their key."""
    data = make_queries(200, 1, language="lambda", random_state=0)
    bags = [[meaning.replace("has(A,fee,no)", "has(A,fee,not(yes))")] for (meaning,) in data.y_train]
    write_bags(tmp_path / "t.jsonl", data.X_train, bags)
    run(tmp_path, "train", "semantics", "t.jsonl", "-m", "m", "--max-iter", "1")
    parser = structsvm.load(tmp_path / "m")
    out = run(tmp_path, "inspect", "m")[0]
    assert " names like in(A,'" in out and ": copied where words look like Xx\n" in out
    for unit in ("has(A,access,private)", "has(A,fee,_1)"):
        assert f"\n{unit}" in out and unit in parser.units_
    assert {"greek", "italian", "chinese"} <= {*parser.units_["has(A,cuisine,_)"]}  # questions spell these out
    assert len(parser.units_["in(A,_)"]) > 80
    with pytest.raises(AttributeError, match="units_ is for models of method='hybrid', this is one of 'ospas'"):
        _ = structsvm.tasks.SemanticParser(method="ospas").fit(["anna runs"], ["run(anna)"]).units_


def test_options(data, tmp_path):
    (tmp_path / "g").write_text("S -> 'eat' '(' A ',' B ')'\nA -> 'john'\nB -> 'cake'")
    options = [
        "--method",
        "ospas",
        "--grammar",
        "g",
        "--strategy",
        "random",
        "--max-iter",
        "2",
        "--average",
        "--refine",
        "1",
        "-C",
        "0.5",
    ]
    options += ["--ngrams", "2", "--window", "1", "--role-window", "1", "--max-meanings", "1", "--no-complete"]
    out, err = run(tmp_path, "train", "semantics", data / "train.jsonl", "-m", "m", "-q", *options)
    assert (out, err) == ("", "")
    parser = structsvm.load(tmp_path / "m")
    given = {
        "strategy": "random",
        "max_iter": 2,
        "average": True,
        "refine": 1,
        "C": 0.5,
        "ngrams": 2,
        "complete": False,
    }
    found = parser.get_params() | parser.method.get_params()
    assert given.items() <= found.items()
    assert parser.grammar.start == "S" and parser.n_iter_ == 4  # two, and two refined


def test_the_demo_is_the_house(tmp_path):
    pytest.importorskip("matplotlib")
    out, _ = run(tmp_path, "demo", "semantics", "-o", "house.png")
    errors = [float(line.split("alignment error ")[1].split(" %")[0]) for line in out.splitlines() if "level" in line]
    assert len(errors) == 3 and max(errors) < 5.0
    house, test = make_ambig_house(2000, 1, random_state=0), make_ambig_house(500, 0, random_state=1)
    parser = structsvm.tasks.SemanticParser(method="ospas", random_state=0).fit(house.sentences, house.bags)
    f1 = 100 * meaning_scores(test.meanings, parser.predict(test.sentences)).f1
    symbols = [[symbol for _, symbol in pairs] for pairs in parser.predict_alignment(test.sentences)]
    error = 100 * alignment_error(test.alignment, symbols)
    assert f"level 1: alignment error {error:.1f} %, F1 of meanings {f1:.1f}" in out.splitlines()
    assert (tmp_path / "house.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"sentence": "a", "bag": []}', 'bad.jsonl, line 2: "bag" must be a list'),
        ('{"sentence": "a", "bag": ["f(a"]}', "bad.jsonl, line 2: the end, with 1 brackets open: they are unbalanced"),
        ('{"sentence": "a", "bag": ["f(a))"]}', "bad.jsonl, line 2: ')' outside of all brackets: they are unbalanced"),
        ('{"sentence": " ", "bag": ["f(a)"]}', 'bad.jsonl, line 2: "sentence" must be text, or a list of words'),
        ('{"sentence": "a"}', 'bad.jsonl, line 2: no "bag" of meaning representations'),
        (
            '{"sentence": "a", "bag": ["f(-)"]}',
            "bad.jsonl, line 2: the constant '-' is what words have that mean nothing",
        ),
        ("nonsense", "bad.jsonl, line 2: no object of JSON"),
    ],
)
def test_bad_lines(tmp_path, line, message):
    (tmp_path / "bad.jsonl").write_text('{"sentence": "a", "bag": ["f(a)"]}\n' + line + "\n")
    method = ["--method", "ospas"] if "(-)" in line else []  # whose empty symbol it is
    _, err = run(tmp_path, "train", "semantics", "bad.jsonl", "-m", "m", *method, status=1)
    assert message in err
    assert os.listdir(tmp_path) == ["bad.jsonl"]


@pytest.mark.parametrize(
    "bag",
    [
        ["sit(bo)", "sleep(cem)"],  # the right one is missing
        ["f(a,b,g(c,d))"],  # more symbols than words
        ["run(anna)", "run(anna)", "run( anna )"],  # the same several times
        ["run(anna)", "run()", "run(anna,bo)"],  # different arities
        ["läuft(größe,漢字)"],
    ],
)
def test_odd_bags_are_learnt_from(tmp_path, bag):
    # The third sentence tells "bo" and "runs" apart, which without it are in the same bags but for the odd one.
    pairs = [("anna runs", bag), ("bo runs", ["run(bo)"]), ("bo sleeps", ["sleep(bo)"])] * 5
    lines = [json.dumps({"sentence": sentence, "bag": of_one}) for sentence, of_one in pairs]
    (tmp_path / "odd.jsonl").write_text("\n".join(lines), encoding="utf-8")
    run(tmp_path, "train", "semantics", "odd.jsonl", "-m", "m", "--max-iter", "3", "--method", "ospas")
    text = '{"sentence": "bo runs"}\n{"sentence": "zoë 漢字 jumps"}'  # words never seen
    out, _ = run(tmp_path, "predict", "m", "-", text=text)
    known, unseen = map(json.loads, out.splitlines())
    assert known["meaning"] == ["run(bo)"]
    assert unseen["alignment"] == ["-", "-", "-"] and unseen["sentence"] == "zoë 漢字 jumps"


def test_hybrid_trees_are_the_default(data, tmp_path):
    lines = read_bags(data / "test.jsonl")
    out, _ = run(tmp_path, "train", "semantics", data / "test.jsonl", "-m", "m", "--max-iter", "2")
    assert "units; no duality gap claimed; 2 passes (max_iter)" in out
    parser = structsvm.tasks.SemanticParser(max_iter=2, random_state=0).fit(lines.sentences, lines.bags)
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.model_.weights, parser.model_.weights)
    text = json.dumps({"sentence": lines.sentences[0]})
    best = json.loads(run(tmp_path, "predict", "m", "-", "-k", "2", text=text)[0])["best"]
    assert [(row["meaning"], row["probability"]) for row in best] == parser.predict_kbest(lines.sentences[:1], 2)[0]
    assert 0.0 <= json.loads(run(tmp_path, "evaluate", "m", data / "test.jsonl", "--json")[0])["alignment_error"] <= 1.0
    assert "drink (2 arguments): " in run(tmp_path, "inspect", "m", "--label", "drink")[0]


def test_solvers_losses_and_features(data, tmp_path):
    lines = (data / "test.jsonl").read_text().splitlines(keepends=True)[:30]
    (tmp_path / "t.jsonl").write_text("".join(lines))
    options = ["--solver", "passive_aggressive", "--loss", "f1", "--features", "bigrams,shape"]
    out, _ = run(tmp_path, "train", "semantics", "t.jsonl", "-m", "m", *options)
    assert "units; " in out
    bags = read_bags(tmp_path / "t.jsonl")
    method = structsvm.tasks.Hybrid(solver="passive_aggressive", loss="f1", features=("bigrams", "shape"))
    parser = structsvm.tasks.SemanticParser(random_state=0, method=method).fit(bags.sentences, bags.bags)
    loaded = structsvm.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.model_.weights, parser.model_.weights)
    assert loaded.method.get_params() == method.get_params()
    run(tmp_path, "train", "semantics", "t.jsonl", "-m", "m", "--features", "", "--max-iter", "1")
    assert not structsvm.load(tmp_path / "m").method.features


def test_a_lexicon_of_phrases(tmp_path):
    states = ["ohio", "texas", "iowa", "utah"]
    lines = [{"sentence": f"capital of {s}", "bag": f"capital(stateid('{s}'))"} for s in states]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "lexicon.tsv").write_text("lone star state\tstateid('texas')\n\nthe isle\tstateid('guam')\n")
    run(tmp_path, "train", "semantics", "t.jsonl", "-m", "m", "--lexicon", "lexicon.tsv")
    for phrase, name in (("lone star state", "texas"), ("the isle", "guam")):
        out, _ = run(tmp_path, "predict", "m", "-", text=json.dumps({"sentence": f"capital of {phrase}"}))
        assert json.loads(out)["meaning"] == [f"capital(stateid('{name}'))"]
    for text, message in (
        ("a\n", "line 1: not a phrase, a tab and a name: 'a'"),
        ("a\tb\tc\n", "line 1: not a phrase, a tab and a name"),
        ("\na\tb(\n", "line 2: "),
        ("a\tb\na\tc\n", "line 2: 'a' has another name above"),
    ):
        (tmp_path / "bad.tsv").write_text(text)
        _, err = run(tmp_path, "train", "semantics", "t.jsonl", "-m", "m2", "--lexicon", "bad.tsv", status=1)
        assert f"bad.tsv, {message}" in err and not (tmp_path / "m2").exists()


def test_what_there_is_not(data, tmp_path):
    _, err = run(data, "predict", "house.model", "test.jsonl", "-k", "2", status=1)
    assert "one parse of a sentence" in err
    for args in (["inspect", "house.model"], ["evaluate", "house.model", "test.jsonl"]):
        out, err = run(data, *args, "--plot", "p.png", status=1)
        assert out == "" and "nothing to show" in err
    _, err = run(tmp_path, "train", "semantics", data / "train.jsonl", "-m", "none/m", status=1)
    assert "there is no folder" in err
    _, err = run(tmp_path, "train", "semantics", data / "train.jsonl", "-m", "m", "--solver", "pcfg", status=2)
    assert "'pcfg' is not one of" in err
    for option, message in (
        (("--method", "ospas", "-C", "0"), "'-C': '0' is not auto or a float in the range (0.0, inf)"),
        (("--method", "ospas", "--solver", "larank"), "--solver has no effect with --method ospas"),
        (("--method", "ospas", "--abstain-below", "0.5"), "--abstain-below has no effect with --method ospas"),
        (("--method", "ospas", "--features", "shape"), "--features has no effect with --method ospas"),
        (("--loss", "f1"), "--loss belongs to solvers of the dual. Got 'f1'"),
        (("--features", "bigrams,words"), "--features may be affixes, shape, bigrams, borders, inside. Got 'words'"),
        (("--average",), "--average has no effect with --method hybrid"),
        (("--no-complete",), "--no-complete has no effect with --method hybrid"),
        (("--window", "1"), "--window has no effect with --method hybrid"),
    ):
        _, err = run(tmp_path, "train", "semantics", data / "train.jsonl", "-m", "m", *option, status=2)
        assert message in err
    assert not os.listdir(tmp_path)


def test_ctrl_c_leaves_a_usable_model(data, tmp_path):
    process = subprocess.Popen(
        [
            *COMMAND,
            "train",
            "semantics",
            data / "train.jsonl",
            "-m",
            "m",
            "--max-iter",
            "10000000",
            "--method",
            "ospas",
            "--checkpoint",
            "c",
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert "600 sentences" in process.stdout.readline()
        while not (tmp_path / "c").exists() and process.poll() is None:  # a pass
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, (out, err)
    assert "interrupted after" in err and "passes: m holds the partial model" in err and "Traceback" not in err
    parser = structsvm.load(tmp_path / "m")
    assert parser.result_.status == "interrupted" and parser.n_iter_ > 0
    assert json.loads(run(data, "evaluate", tmp_path / "m", "test.jsonl", "--json")[0])["f1"] > 0.9


def test_scikit_learn_is_never_imported(data):
    code = """
import sys
from structsvm.cli import main
for args in (["train", "semantics", "train.jsonl", "-m", "m", "-q", "--method", "ospas"],
             ["train", "semantics", "test.jsonl", "-m", "h", "-q", "--max-iter", "1"],
             ["predict", "h", "test.jsonl", "-o", "p"], ["predict", "m", "test.jsonl", "-o", "p"],
             ["evaluate", "m", "test.jsonl"], ["inspect", "m", "--label", "john"]):
    try:
        main(args)
    except SystemExit as end:
        assert not end.code, end.code
found = {name.split(".")[0] for name in sys.modules}
heavy = sorted(found & {"sklearn", "scipy", "networkx", "matplotlib", "pandas", "joblib"})
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=data, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
