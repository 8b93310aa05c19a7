"""Tests run against the installed package, never against the folders of the checkout."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent

# `python -m pytest` puts the working directory on the path. There the folder `structsvm` would hide the
# installed package, and `oracles` and `tasks` would be packages of their own.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

# An editable install is rebuilt by its first import: once, before parallel workers import it at the same time.
import structsvm  # noqa: E402, F401
