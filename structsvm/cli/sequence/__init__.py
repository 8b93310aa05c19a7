"""The commands for label sequences: files of columns and of attributes, streams, models of other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structsvm.cli.sequence.command import TASK as TASK

__all__ = ["TASK"]


def __getattr__(name: str) -> object:
    """The commands, which import what trains: prediction alone does not need it."""
    if name != "TASK":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from structsvm.cli.sequence.command import TASK

    return TASK
