"""Exported models: bits and budgets against score, load time, memory and speed, in Python, C and WebAssembly.

    python benchmarks/runtime.py [--part tagging-addresses|tagging-citations|tagging-chunks|tagging-entities|all]
                                 [--fresh] [--quick]

Prints tables and stores them in benchmarks/results/runtime.json and runtime.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. Needs a C compiler on Linux and
python-crfsuite, for addresses usaddress; WebAssembly is left out without node and zig (pip install ziglang). The row of
python-crfsuite is kept and reused, unless --fresh.
"""

from common.parts import main

PARTS = ("tagging-addresses", "tagging-citations", "tagging-chunks", "tagging-entities")

if __name__ == "__main__":
    main("runtime", PARTS, __doc__, fresh="run python-crfsuite again, do not reuse its results")
