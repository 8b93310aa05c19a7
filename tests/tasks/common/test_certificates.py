"""Certificates of estimators as they come: all have a gap, and choose C, but those that the page names."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from cases import TABLE

from structsvm.tasks.registry import ESTIMATORS

PAGE = Path(__file__).parents[3] / "docs" / "solvers" / "certificates.md"
CASES = {case.kind.__name__: case for case in reversed(TABLE.values())}


def exceptions():
    """Rows of the page's table of estimators that claim less: name to ``(C, gap)``."""
    text = PAGE.read_text(encoding="utf-8").split("### What is not claimed")[1].split("\nNor is")[0]
    return {name: (C, gap) for name, C, gap in re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", text, re.MULTILINE)}


@pytest.mark.parametrize("name", [entry.name for entry in ESTIMATORS])
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_who_chooses_C_and_ends_with_a_gap(name):
    case = CASES[name]
    seed = {"random_state": 0} if "random_state" in inspect.signature(case.kind).parameters else {}
    model = case.train(case.kind(**seed))
    chooses = model.get_params().get("C") == "auto"
    result = getattr(model, "result_", None)
    certifies = result is not None and np.isfinite(result.gap) and result.dual <= result.primal * (1.0 + 1e-9)
    C, gap = exceptions().get(name, ("chosen", "certified"))
    assert (C == "chosen", gap.startswith("none")) == (chooses, not certifies)
    assert (name in exceptions()) == (not chooses or not certifies)


def test_the_page_names_estimators():
    assert exceptions().keys() < {entry.name for entry in ESTIMATORS}
