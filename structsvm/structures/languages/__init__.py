"""Regular languages over labels: expressions, ready rules, their smallest automata, and chains of label and state."""

from structsvm.structures.languages.automaton import Automaton
from structsvm.structures.languages.rules import (
    Rule,
    at_least_one,
    at_most_once,
    before,
    exactly_one,
    in_order,
    max_length,
    one_run_each,
)

__all__ = [
    "Automaton",
    "Rule",
    "at_least_one",
    "at_most_once",
    "before",
    "exactly_one",
    "in_order",
    "max_length",
    "one_run_each",
]
