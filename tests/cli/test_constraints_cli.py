"""Rules of label sequences on the command line: in training, and for predictions alone."""

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
    assert [labels_of(one.split("\n", 1)[1]) for one in best[:2]] == [
        VALID,
        ["NO", "STREET", "STREET", "CITY"],
    ]
    (work / "bad").write_text("at_most_once(STREET)\nNO (STREET\n")
    err = run(work, "predict", "free", "input", "--constraints", "bad", status=1)[1]
    assert "constraints: the expression 'NO (STREET', at character 11: expected a ) for the ( at character 4" in err
    (work / "empty").write_text("# nothing\n")
    err = run(work, "predict", "free", "input", "--constraints", "empty", status=1)[1]
    assert "empty: has no constraint" in err


def test_in_training(work):
    run(work, "train", "sequence", "train", "-m", "ruled", "-C", "1", "-q", "--constraints", "rules")
    assert labels_of(run(work, "predict", "ruled", "input")[0])[::3] == ["NO", "CITY"]
    lines = [line for line in RULES.split("\n") if line and line[0] != "#"]
    assert structsvm.load(work / "ruled").get_params()["constraints"] == lines
    assert f"constraints={lines}" in run(work, "inspect", "ruled")[0]
    (work / "strict").write_text("NO STREET CITY")
    args = ["train", "sequence", "train", "-m", "no", "-C", "1", "-q", "--constraints"]
    err = run(work, *args, "strict", status=1)[1]
    assert "sequence 0: the expression 'NO STREET CITY' does not allow its label 'STREET' at token 2" in err
    run(work, *args, "strict", "--broken", "predict")
    err = run(work, *args, "nothing", status=2)[1]
    assert "'nothing' is no scheme (bio, bioes" in err
    assert "and no file of constraints" in err
