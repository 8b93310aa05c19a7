"""Grammar learning on the treebank sample: table 5 of the SVMstruct paper, and what exact inference costs.

Parts: table5 (the paper's figures), table5-10, -15, -20 and -40 (methods by longest sentence), table5-folds (the same,
cross-validated), cost (loss-augmented inference beside plain parsing), speed (parsing).

    python benchmarks/grammar.py [--part table5-10] [--quick]
"""

from __future__ import annotations

import os

from _measure import ENVIRONMENT

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _grammar_cost
import _grammar_speed
import _grammar_table5
from _parts import parser, run

PARTS = _grammar_table5.PARTS | {"cost": _grammar_cost, "speed": _grammar_speed}


def arguments():
    return parser(__doc__, PARTS).parse_args()


if __name__ == "__main__":
    run("grammar", PARTS, arguments())
