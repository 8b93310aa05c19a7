"""Exported models: bits and budgets against score, load time, memory and speed, in Python, C and WebAssembly.

    python benchmarks/runtime.py [--part equal|tagging-addresses|tagging-citations|tagging-chunks|tagging-entities|all]
                                 [--fresh] [--quick]

Prints tables and stores them in benchmarks/results/runtime.json and runtime.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. Needs a C compiler on Linux and
python-crfsuite, for addresses usaddress. WebAssembly is left out without zig (pip install ziglang), Node and Chromium
where they are not found, CRF++ if it is neither on the PATH nor named by CRF_LEARN. The rows of python-crfsuite and
CRF++ are kept and reused, unless --fresh.
"""

import sys
from pathlib import Path

sys.path[:0] = [folder for folder in [str(Path(__file__).resolve().parent)] if folder not in sys.path]

from common.parts import main  # noqa: E402

PARTS = ("equal", "tagging-addresses", "tagging-citations", "tagging-chunks", "tagging-entities")

if __name__ == "__main__":
    main("runtime", PARTS, __doc__, fresh="run python-crfsuite and CRF++ again, do not reuse their results")
