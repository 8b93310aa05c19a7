"""The options that say which kernel, of all commands that train with one."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

# What is not given, where there is a kernel.
DEFAULTS = {"kernel": "rbf", "gamma": "scale", "degree": 3, "coef0": 0.0}


def kernel_options(default: Any) -> Any:
    """Decorate a command with --kernel, --gamma, --degree and --coef0, None where not given.

    Parameters
    ----------
    default : str
        What the help says of --kernel.
    """
    options = [
        click.option("--kernel", type=click.Choice(["linear", "poly", "rbf", "sigmoid"]), help=f"[default: {default}]"),
        click.option("--gamma", callback=gamma, help="A number, scale or auto.  [default: scale]"),
        click.option("--degree", type=click.IntRange(0, 2**31 - 1), help="Of poly.  [default: 3]"),
        click.option("--coef0", type=float, callback=coef0, help="Of poly and sigmoid.  [default: 0]"),
    ]

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def gamma(ctx: Any, param: Any, value: Any) -> Any:
    """What --gamma takes."""
    if value in (None, "scale", "auto"):
        return value
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0.0 < number < np.inf:
        raise click.BadParameter(f"{value!r} is not scale, auto or a positive number", ctx, param)
    return number


def coef0(ctx: Any, param: Any, value: Any) -> Any:
    """What --coef0 takes."""
    if value is None or np.isfinite(value):
        return value
    raise click.BadParameter(f"{value!r} is not a finite number", ctx, param)


def kernel_text(kernel: Any) -> str:
    """The kernel and its parameters."""
    used = {"rbf": ("gamma",), "poly": ("gamma", "degree", "coef0"), "sigmoid": ("gamma", "coef0")}.get(kernel.name, ())
    return f"{kernel.name}({', '.join(f'{name}={getattr(kernel, name):g}' for name in used)})"
