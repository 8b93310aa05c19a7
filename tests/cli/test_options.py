"""Options of the commands that train: their defaults are those of the estimators."""

import inspect

import click
import pytest

from structsvm import tasks
from structsvm.cli import main
from structsvm.cli.training import defaults

TRAIN = main.commands["train"]
ESTIMATORS = {
    "alignment": tasks.SequenceAligner,
    "binary": tasks.LaSVMClassifier,
    "dependency": tasks.DependencyParser,
    "grammar": tasks.GrammarParser,
    "graph": tasks.GraphLabeler,
    "multiclass": tasks.LaRankClassifier,
    "ranking": tasks.Ranker,
    "semantics": tasks.SemanticParser,
    "sequence": tasks.SequenceLabeler,
    "taxonomy": tasks.TaxonomyClassifier,
}


@pytest.mark.parametrize("task", ESTIMATORS)
def test_defaults(task):
    command = TRAIN.get_command(click.Context(TRAIN), task)
    mine = defaults(command)
    its = {n: p.default for n, p in inspect.signature(ESTIMATORS[task]).parameters.items()}
    shared = {name: (mine[name], its[name]) for name in mine.keys() & its.keys() if mine[name] is not None}
    assert shared.pop("random_state") == (0, None)  # a command repeats itself
    assert all(default == wanted for default, wanted in shared.values()), shared
    assert len(shared) >= 2 or task in ("binary", "multiclass")  # whose machines have defaults of their own
