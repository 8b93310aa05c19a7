"""Taxonomies: table 1 of the paper on three data sets, other classifiers, 100 to 10,000 classes, dense rows and
probabilities.

    python benchmarks/taxonomy.py [--part table1|peers|scaling|dense|calibration|all] [--quick] [--repeat N]

Prints tables and stores them in benchmarks/results/taxonomy.json and taxonomy.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder. HiClass takes part if it is
installed.
"""

from common.parts import main

PARTS = ("table1", "peers", "scaling", "dense", "calibration")

if __name__ == "__main__":
    main("taxonomy", PARTS, __doc__)
