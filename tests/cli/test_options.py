"""Options of the commands that train: their defaults are those of the estimators; none without effect is accepted."""

import dataclasses
import inspect

import click
import pytest
from command_line import run

from structsvm import tasks
from structsvm.cli import OTHER_NAMES, TASKS, binary, main, multiclass
from structsvm.cli.training import defaults
from structsvm.parameters import Options, constraints_of
from structsvm.tasks.registry import names_of

TRAIN = main.commands["train"]


@pytest.mark.parametrize("task", TASKS)
def test_defaults(task):
    command = TRAIN.get_command(click.Context(TRAIN), task)
    mine = defaults(command)
    kind = getattr(tasks, names_of(task)[0])
    its = {n: p.default for n, p in inspect.signature(kind).parameters.items()}
    for group in getattr(kind._model_class, "groups", ()):
        its |= {n: p.default for n, p in inspect.signature(group).parameters.items()}
    shared = {name: (mine[name], its[name]) for name in mine.keys() & its.keys() if mine[name] is not None}
    assert shared.pop("random_state") == (0, None)  # a command repeats itself
    assert all(default == wanted for default, wanted in shared.values()), shared
    assert len(shared) >= 2 or task in ("binary", "multiclass")  # whose machines have defaults of their own


def test_machines_that_commands_train():
    assert [machine.estimator for machine in multiclass.SOLVERS.values()] == names_of("multiclass")
    trained = [machine.estimator for machine in binary.MACHINES.values()]
    assert trained == [name for name in names_of("binary") if name != "TrackingClassifier"]


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_choices_of_machines_are_those_of_their_parameters(task):
    types = {option.name: option.type for option in TRAIN.get_command(click.Context(TRAIN), task).params}
    compared = set()
    for field in (field for name in names_of(task) for field in dataclasses.fields(getattr(tasks, name))):
        words = {word for one in constraints_of(field) if isinstance(one, Options) for word in one.names}
        kind = types.get(field.name)
        if words and kind is not None and field.name != "solver":  # names the machine
            assert set(getattr(kind, "choices", getattr(kind, "words", ()))) == words - {"precomputed"}
            compared.add(field.name)
    assert compared >= {"C", "kernel", "gamma", "selection"}


RBF = ["--kernel", "rbf"]


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("binary", ["--checkpoint-every", 2], "--checkpoint-every has no effect without --checkpoint"),
        *(
            ("grammar", ["--pcfg", *options], f"{options[0]} has no effect with --pcfg")
            for options in (
                *(["-C", 5], ["--max-iter", 3], ["--tol", 0.1], ["--loss", "f1"], ["--penalty", "quadratic"]),
                *(["--rescaling", "slack"], ["--probability"], ["--span-bits", 3], ["--jobs", 3], ["--seed", 3]),
                *(["--checkpoint", "c"], ["--prior", "none"], ["--prior", "pcfg"], ["--solver", "larank"]),
                *(["--span-features"], ["--no-span-features"], ["--partial"]),
            )
        ),
        ("grammar", ["--smoothing", 1], "--smoothing has no effect without --pcfg"),
        ("grammar", ["--loss", "log", "--penalty", "quadratic"], "--penalty has no effect with --loss log"),
        ("grammar", ["--min-count", 3], "--min-count has no effect with --terminals tags"),
        ("grammar", ["--no-span-features", "--span-bits", 4], "--span-bits has no effect with --no-span-features"),
        ("dependency", ["--order", 1, "--pair-templates", "t"], "--pair-templates has no effect with --order 1"),
        ("taxonomy", [*RBF, "--degree", 2], "--degree has no effect with --kernel rbf"),
        ("taxonomy", [*RBF, "--coef0", 2], "--coef0 has no effect with --kernel rbf"),
        ("taxonomy", [*RBF, "--max-weights", 9], "--max-weights has no effect with --kernel"),
        ("taxonomy", ["--kernel", "linear", "--gamma", 2], "--gamma has no effect with --kernel linear"),
        ("taxonomy", ["--min-count", 2], "--min-count has no effect on documents in svmlight format"),
        ("taxonomy", ["--ngrams", 2, "--shards", "s"], "--ngrams has no effect on documents in svmlight format"),
    ],
)
def test_options_without_effect(tmp_path, task, options, message):
    (tmp_path / "d").write_text("1 1:1\n2 2:1\n")
    (tmp_path / "t").write_text("h.upos m.upos\n")
    _, err = run(tmp_path, "train", task, "d", "-m", "m", *options, status=2)
    assert f"Error: {message}\n" in err
    assert {path.name for path in tmp_path.iterdir()} == {"d", "t"}


def test_what_goes_with_the_other_choice_is_accepted(tmp_path):
    (tmp_path / "d").write_text("(S (A a) (B b))\n" * 8)
    run(tmp_path, "train", "grammar", "d", "-m", "m", "--pcfg", "--smoothing", 0.5, "--terminals", "words", "-q")
    run(tmp_path, "train", "grammar", "d", "-m", "m", "-C", 1, "--terminals", "words", "--min-count", 3, "-q")
    (tmp_path / "d").write_text("1 1:1\n2 2:1\n" * 8)
    for options in (["--kernel", "poly", "--degree", 2, "--coef0", 1, "--gamma", 1], ["--max-weights", 9]):
        run(tmp_path, "train", "taxonomy", "d", "-m", "m", "-C", 1, *options, "-q")


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("tagged", "train sequence learns tags and train dependency parses, structsvm.tasks.TaggedParser in Python"),
        ("NER", "it is train sequence"),
        ("SemanticParser", "it is train semantics"),
        ("concepts", "it has no command, but structsvm.tasks.ConceptLabeler in Python"),
        ("treebank", "it is train grammar"),
    ],
)
def test_other_names_of_tasks_lead_to_theirs(tmp_path, name, right):
    error = run(tmp_path, "train", name, "d", "-m", "m", status=2)[1]
    assert f"No such command {name!r}: {right}" in " ".join(error.split())


def test_other_names_are_of_tasks():
    assert set(OTHER_NAMES) <= set(TASKS) and not set(TASKS) & {
        name for names in OTHER_NAMES.values() for name in names.split()
    }
