"""Check that this package is all ours: the index has another project, structsvm, whose files have the same folder."""

from __future__ import annotations

import os
import sys

_THEIRS = "bundle_method.py"  # a module of that project


def check() -> None:
    """Raise ImportError where files of the other distribution stand beside or in place of these."""
    package = sys.modules["structsvm"]
    is_ours = "_HOMES" in vars(package)
    if not is_ours or os.path.exists(os.path.join(os.path.dirname(__file__), _THEIRS)):
        raise ImportError(
            "the distributions structured-svm, which this is, and structsvm, which is another project, both install a "
            "package named structsvm, and one has overwritten the other: pip uninstall -y structsvm structured-svm; "
            "pip install structured-svm"
        )
