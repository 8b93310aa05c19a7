"""structsvm's side: NumPy in, NumPy out."""

from __future__ import annotations

import inspect
import sys

from layers.timing import answer, scores
from structsvm import layers


def program(case, threads):
    """Return the function that is timed for a case, None without threads of its own."""
    kind = getattr(layers, case["structure"])
    options = {"n_threads": threads} if "n_threads" in inspect.signature(kind).parameters else {}
    if threads > 1 and not options:
        return None
    structure, parts = kind(**options), scores(case)
    if case["action"] == "decode":
        return lambda: structure.argmax(*parts)
    if case["action"] == "sample":
        return lambda: structure.sample(*parts, n_samples=case["samples"], seed=0)
    y = structure.sample(*parts, n_samples=1, seed=0)[:, 0]
    return lambda: layers.log_loss(structure, parts, y)


if __name__ == "__main__":
    answer(sys.argv[1], program)
