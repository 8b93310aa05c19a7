"""What model files keep of training: solvers by name and parameters, so that a loaded model trains on as before."""

from __future__ import annotations

from structsvm import solvers
from structsvm.parameters import plain
from structsvm.solvers.base import Solver


def solver_to_json(solver):
    """``{"solver": name, "params": {...}}``; None for a class that is not one of `structsvm.solvers`."""
    name = type(solver).__name__
    if getattr(solvers, name, None) is not type(solver):
        return None
    params = {key: plain(value) for key, value in solver.get_params().items()}
    return {"solver": name, "params": params | {"checkpoint": None}}  # that file is of one run


def solver_from_json(value):
    """The inverse of `solver_to_json`; ValueError or TypeError for anything that it cannot have written."""
    if value is None:
        return None
    kind = getattr(solvers, value["solver"], None) if value["solver"] in solvers.__all__ else None
    if not (isinstance(kind, type) and issubclass(kind, Solver) and kind is not Solver):
        raise ValueError(f"a solver {value['solver']!r}, which this version does not know")
    solver = kind(**value["params"])
    solver.validate()
    return solver
