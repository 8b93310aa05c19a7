"""The options of the kernel, for all commands that train with one."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import click
import numpy as np

from structsvm.cli.training import with_options
from structsvm.tasks.common.solver import AUTO

# Used for options that are not given.
DEFAULTS = {"kernel": "rbf", "gamma": AUTO, "degree": 3, "coef0": 0.0}


def kernel_options(default: Any) -> Any:
    """Decorate a command with --kernel, --gamma, --degree and --coef0, None where not given."""
    options = [
        click.option("--kernel", type=click.Choice(["linear", "poly", "rbf", "sigmoid"]), help=f"[default: {default}]"),
        click.option("--gamma", type=GAMMA, help="A number, scale, or auto: chosen as C is.  [default: auto]"),
        click.option("--degree", type=click.IntRange(0, 2**31 - 1), help="Of poly.  [default: 3]"),
        click.option("--coef0", type=COEF0, help="Of poly and sigmoid.  [default: 0]"),
    ]
    return partial(with_options, options)


class Number(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """A finite number greater than `low`, or one of a few words; `wanted` is what messages ask for."""

    name = "float"

    def __init__(self, wanted: str, *words: str, low: float = -np.inf) -> None:
        self.wanted, self.words, self.low = wanted, words, low

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in self.words:
            return value
        with suppress(ValueError):
            if self.low < float(value) < np.inf:
                return float(value)
        return self.fail(f"{value!r} is not {self.wanted}", param, ctx)


GAMMA = Number("scale, auto or a positive number", "scale", AUTO, low=0.0)
COEF0 = Number("a finite number")


def kernel_text(kernel: Any) -> str:
    """The kernel and its parameters."""
    used = {"rbf": ("gamma",), "poly": ("gamma", "degree", "coef0"), "sigmoid": ("gamma", "coef0")}.get(kernel.name, ())
    return f"{kernel.name}({', '.join(f'{name}={getattr(kernel, name):g}' for name in used)})"
