"""Layers on given scores: loss and gradient, decoding and sampling, beside pytorch-crf, torch-struct and lax.scan.

    python benchmarks/layers.py [--part heads-chains|heads-trees|heads-others|tagger|all] [--fresh] [--quick]

Prints tables and stores them in benchmarks/results/layers.json and layers.md. The other programs are kept and reused,
unless --fresh. They run by the interpreter that the environment variable LAYERS_PEERS names, each if it is there:
PyTorch with pytorch-crf and torch-struct, JAX. Processes are bound to as many processors as they have threads. The part
`tagger` trains a network with JAX in this interpreter, with heads of structsvm and without.
"""

from common.parts import main

PARTS = ("heads-chains", "heads-trees", "heads-others", "tagger")

if __name__ == "__main__":
    main("layers", PARTS, __doc__, fresh="run the other programs again, do not reuse their results")
