"""Multiclass kernel machines: the tables of three papers, LIBSVM, and time against the number of examples.

    python benchmarks/multiclass.py [--part tables|gala|operations|curves|ww|peers|all] [--quick] [--repeat N]
        [--only TEXT]

Prints tables and stores them in benchmarks/results/multiclass.json and multiclass.md, pictures in multiclass_*.png.
The data come from `structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. ThunderSVM takes
part if it is installed.
"""

from common.parts import main

PARTS = ("tables", "gala", "operations", "curves", "ww", "peers")

if __name__ == "__main__":
    main("multiclass", PARTS, __doc__, only="of gala, only tables with this text in their titles")
