"""Reliability: mutants of files, kills and write faults, Ctrl-C, memory of refused inputs.

    python benchmarks/reliability.py [--part fuzz|faults|interrupts|memory|limits|all] [--only TEXT] [--quick]

Prints tables and stores them in benchmarks/results/reliability.json and reliability.md. The parts "fuzz" and "faults"
run `tests/fuzz` and `tests/faults`: the whole campaign takes some two hours of one core.
"""

from common.parts import main

PARTS = ("fuzz", "faults", "interrupts", "memory", "limits")
ONLY = """of interrupts, the cases with one of these words (a,b) in their names; of fuzz and faults, runs beside those
kept: KIND:SEED:COUNT[:OF],... and SEED:COUNT[:TRAINEE;...]"""

if __name__ == "__main__":
    main("reliability", PARTS, __doc__, only=ONLY)
