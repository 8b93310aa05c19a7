"""The demo of all families, completion in shells, near names, quiet evaluation, models as JSON."""

import json
import warnings

import pytest
from click.testing import CliRunner

from structsvm._warnings import AdviceWarning
from structsvm.cli import TASKS, main
from structsvm.cli.tour import families, pictures
from structsvm.datasets import make_sequences, write_columns

STRUCTURES = [
    *("label sequences", "parse trees", "dependency trees", "alignments", "taxonomies", "meanings", "graphs"),
    *("segments", "matchings", "label sets"),
]


def run(*args, status=0):
    done = CliRunner().invoke(main, list(map(str, args)))
    assert done.exit_code == status, done.output
    return done


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    work = tmp_path_factory.mktemp("tour")
    write_columns(work / "train.txt", *make_sequences(20, random_state=0))
    run("train", "sequence", work / "train.txt", "-m", work / "m", "-C", 0.1, "--max-iter", 1, "-q")
    return work


def test_the_demo_shows_every_family(tmp_path, monkeypatch):
    figures = []
    draw = pictures.page
    monkeypatch.setattr(pictures, "page", lambda found, figure: figures.append(draw(found, figure)) or figures[0])
    done = run("demo", "-o", tmp_path / "all.png")
    lines = done.stdout.splitlines()
    begin = lines.index("") + 2
    assert [line.split("  ")[0] for line in lines[begin:-1]][: len(STRUCTURES)] == STRUCTURES
    assert len(lines[begin:-1]) == len(families.FAMILIES)
    assert lines[-1] == f"picture: {tmp_path / 'all.png'}"
    # Each structure has a panel with its certificate.
    panels = figures[0].axes
    assert [ax.get_title(loc="left").split(":")[0] for ax in panels] == STRUCTURES
    said = ["\n".join(text.get_text() for text in ax.texts) for ax in panels]
    assert all("passes" in text for text in said)
    assert sum("gap" in text and "%" in text for text in said) >= 5
    assert "number" in said[0] and "TOP" in said[1] and "root" in said[2] and "(" in said[5] and "quantity" in said[7]
    assert "shop" in said[4]


def test_a_wrong_label_is_said_so():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    pictures.sentence(ax, ["a", "b"], ["B-X", "O"], ["B-X", "I-X"])
    assert [text.get_text() for text in ax.texts] == ["a", "B-X", "b", "O", "not I-X"]


def test_every_task_with_commands_has_a_family():
    others = {"segments", "matching", "multivariate"}
    assert sorted(families.FAMILIES.keys() - others) == TASKS


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    script = run("completion", shell).stdout
    assert "_STRUCTSVM_COMPLETE" in script
    done = run("completion", shell, "--install")
    (path,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert path.read_text().strip() == script.strip()
    assert done.stdout.startswith(str(path))


def test_what_is_completed():
    done = CliRunner().invoke(
        main, env={"_STRUCTSVM_COMPLETE": "bash_complete", "COMP_WORDS": "structsvm train se", "COMP_CWORD": "2"},
        prog_name="structsvm",
    )  # fmt: skip
    assert done.output.split() == ["plain,semantics", "plain,sequence"]


@pytest.mark.parametrize(
    ("args", "meant"),
    [(["traain"], "train"), (["train", "seqence_"], "sequence"), (["train", "ranging"], "ranking"), (["Demo"], "demo")],
)
def test_commands_that_were_meant(args, meant):
    said = run(*args, status=2).output
    assert f"No such command '{args[-1]}'" in said
    assert f"id you mean '{meant}'?" in said


@pytest.mark.parametrize(
    ("args", "meant"), [(["demo", "graf"], "graph"), (["completion", "Bahs"], "bash")], ids=["demo", "completion"]
)
def test_names_that_were_meant(args, meant):
    assert f"{args[-1]!r} is not one of " in run(*args, status=2).output
    assert run(*args, status=2).output.endswith(f"; did you mean {meant!r}?\n")


@pytest.mark.parametrize("args", [["xyzzy"], ["demo", "xyzzy"]], ids=len)
def test_commands_that_are_like_none(args):
    assert "mean" not in run(*args, status=2).output


def test_quiet_evaluation(work, monkeypatch):
    monkeypatch.setattr("structsvm.cli.sequence.command.say_unseen", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        loud = run("evaluate", work / "m", work / "train.txt", "--plot", work / "e.png")
        quiet = run("evaluate", work / "m", work / "train.txt", "--plot", work / "e.png", "-q")
    assert loud.stderr.startswith("warning: mind\n") and "picture" in loud.stderr
    assert quiet.stderr == ""
    assert quiet.stdout == loud.stdout


def warned(*args):
    warnings.warn("mind", AdviceWarning, stacklevel=1)
    return tuple(map(list, args))


def test_a_model_as_json(work):
    found = json.loads(run("inspect", work / "m", "--json", "--top", 2, "--label", "B-NP").stdout)
    assert (found["task"], found["estimator"], found["C"], found["params"]["max_iter"]) == (
        "sequence", "SequenceLabeler", 0.1, 1,
    )  # fmt: skip
    assert found["result"]["primal"] >= found["result"]["dual"] > 0.0
    assert list(found["weights"]) == ["B-NP"]
    (_, first), (_, second) = found["weights"]["B-NP"]
    assert abs(first) >= abs(second) > 0.0
    message = run("inspect", work / "m", "--json", "--label", "b-np", status=1).output
    assert "'b-np' is not one of the labels" in message and "did you mean 'B-NP'" in message
