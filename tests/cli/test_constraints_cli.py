"""Rules of label sequences on the command line: in training, and for predictions alone."""

import json

import pytest
from command_line import run

import structsvm

TRAIN = [
    ["1 NO", "Oak STREET", "Street STREET", "Rome CITY"],
    ["2 NO", "Elm STREET", "Paris CITY"],
    ["3 NO", "Oak STREET", "Street STREET", "Oslo CITY"],
]
VALID = ["NO", "STREET", "CITY", "CITY"]
RULES = "# a street and a city\n\nat_most_once(STREET, CITY)\nNO . .* CITY\n"


@pytest.fixture
def work(tmp_path):
    """A folder of addresses in columns, of rules, and with a model that breaks them."""
    (tmp_path / "train").write_text("\n\n".join("\n".join(lines) for lines in TRAIN) + "\n")
    (tmp_path / "input").write_text("2\nOak\nRome\nStreet\n")
    (tmp_path / "rules").write_text(RULES)
    run(tmp_path, "train", "sequence", "train", "-m", "free", "-C", "1", "-q")
    return tmp_path


def labels_of(text):
    return [line.split("\t")[-1] for line in text.strip().split("\n")]


@pytest.mark.parametrize(
    "text", ["\ufeff" + RULES, RULES.replace("\n", "\r\n"), RULES.replace("\n", "\r")], ids=["mark", "CRLF", "CR"]
)
def test_files_of_rules_as_editors_write_them(work, text):
    (work / "rules").write_bytes(text.encode())
    assert labels_of(run(work, "predict", "free", "input", "--constraints", "rules")[0]) == VALID


def test_for_predictions_alone(work):
    assert labels_of(run(work, "predict", "free", "input")[0]) == ["NO", "STREET", "CITY", "STREET"]
    assert labels_of(run(work, "predict", "free", "input", "--constraints", "rules")[0]) == VALID
    best = run(work, "predict", "free", "input", "-k", "2", "--constraints", "rules")[0].split("\n\n")
    assert [labels_of(one.split("\n", 1)[1]) for one in best[:2]] == [VALID, ["NO", "STREET", "STREET", "CITY"]]
    (work / "bad").write_text("at_most_once(STREET)\nNO (STREET\n")
    err = run(work, "predict", "free", "input", "--constraints", "bad", status=1)[1]
    assert (
        "bad, line 2: constraints: the expression 'NO (STREET', at character 11: expected a ) for the ( at character 4"
        in err
    )
    (work / "both").write_text("NO*\n\nSTREET+\n")
    err = run(work, "evaluate", "free", "train", "--constraints", "both", status=1)[1]
    assert "both: constraints: no sequence of the labels meets" in err
    (work / "empty").write_text("# nothing\n")
    err = run(work, "predict", "free", "input", "--constraints", "empty", status=1)[1]
    assert "empty: has no constraint" in err


def test_scores_of_predictions_under_rules(work):
    (work / "true").write_text("2 NO\nOak STREET\nRome CITY\nStreet CITY\n")
    free, ruled = (
        json.loads(run(work, "evaluate", "free", "true", "--json", *more)[0])["accuracy"]
        for more in ((), ("--constraints", "rules"))
    )
    assert (free, ruled) == (0.75, 1.0)
    (work / "classes").write_text("1 1:1\n2 2:1\n" * 5)
    run(work, "train", "multiclass", "classes", "-m", "other", "-C", "1", "-q")
    err = run(work, "evaluate", "other", "classes", "--constraints", "rules", status=2)[1]
    assert "--constraints is for models that label sequences or graphs" in err


def test_in_training(work):
    run(work, "train", "sequence", "train", "-m", "ruled", "-C", "1", "-q", "--constraints", "rules")
    assert labels_of(run(work, "predict", "ruled", "input")[0])[::3] == ["NO", "CITY"]
    lines = [line for line in RULES.split("\n") if line and line[0] != "#"]
    assert structsvm.load(work / "ruled").get_params()["constraints"] == lines
    shown = run(work, "inspect", "ruled")[0]
    assert f"constraints={lines}" in shown
    assert "the rule at_most_once(STREET): 3 states" in shown and "the expression 'NO . .* CITY': 4 states" in shown
    assert "all rules together: " in shown and "all rules together" not in run(work, "inspect", "free")[0]
    rules = json.loads(run(work, "inspect", "ruled", "--json")[0])["rules"]
    assert [rule["states"] for rule in rules] == [3, 3, 4] and rules[0]["rule"] == "the rule at_most_once(STREET)"
    (work / "strict").write_text("NO STREET CITY")
    args = ["train", "sequence", "train", "-m", "no", "-C", "1", "-q", "--constraints"]
    err = run(work, *args, "strict", status=1)[1]
    assert "sequence 0: the expression 'NO STREET CITY' does not allow its label 'STREET' at token 2" in err
    run(work, *args, "strict", "--broken", "predict")
    err = run(work, *args, "nothing", status=2)[1]
    assert "'nothing' is no scheme (bio, bioes" in err
    assert "and no file of constraints" in err
