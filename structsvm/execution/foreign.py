"""Calls of Python by programs that JAX compiles for the host, by XLA's foreign function interface.

`jax.pure_callback` does the same, in more versions and for all devices: it copies arrays to others of JAX first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from structsvm.execution._foreign import TYPES, VERSIONS, handler, serve

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["can_call", "results_of", "serve"]

TARGET = "structsvm_call"  # the handler's name in compiled programs


def can_call(arrays: Sequence[AnyArray]) -> bool:
    """Whether programs can call a function with arrays of these types: there is one device, the host, and no other."""
    import jax
    import jax.extend.backend

    known = set(TYPES.values())
    return (
        all(array.dtype in known for array in arrays)
        and set(jax.extend.backend.backends()) == {"cpu"}
        and jax.device_count() == 1
        and is_registered()
    )


@cache
def is_registered() -> bool:
    """Register the handler; False if this version of JAX has no interface, or one that the handler does not know.

    The host must have been asked for its devices before: earlier, JAX stores handlers, and fails with them later.
    """
    try:
        from jax.ffi import register_ffi_target
    except ImportError:
        return False
    for version in VERSIONS:
        try:
            register_ffi_target(TARGET, handler(version), platform="cpu")
        except (RuntimeError, ValueError):  # XLA has left this version behind, or is older
            continue
        return True
    return False


def results_of(
    function: str, shapes: Sequence[object], arrays: Sequence[AnyArray], *, quick: bool = False
) -> tuple[AnyArray, ...]:
    """Have a program call the function that `serve` makes of a text: the results, of these shapes and types."""
    from jax.ffi import ffi_call

    found: tuple[AnyArray, ...] = ffi_call(TARGET, tuple(shapes), vmap_method="sequential")(
        *arrays, function=function, quick=np.int64(quick)
    )
    return found
