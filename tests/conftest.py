"""The references are modules that tests share; nothing of the package is imported here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "reference"))
