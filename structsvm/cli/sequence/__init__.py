"""The commands for label sequences: files of columns and of attributes, streams, models of other programs."""

from structsvm.cli.sequence.command import TASK

__all__ = ["TASK"]
