"""``python tests/fuzz --kind model --seed 1 --count 100000``: mutants of files, read in child processes.

Exits with 1 if one of them crashed, ran for more than 10 CPU seconds, asked for more than 4 GB or raised an exception
that is not documented. ``--save FOLDER`` writes the first mutant of each fault there; ``--only INDEX`` reads one mutant
in this process and shows its traceback.
"""

import argparse
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))

from kinds import KINDS
from runner import mutant, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/fuzz", description=__doc__)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS), help="default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="mutants of each kind")
    parser.add_argument("--first", type=int, default=0, help="index of the first mutant")
    parser.add_argument("--of", default="", help="of model files, only those of estimators with this in their names")
    parser.add_argument("--save", type=Path, help="folder for the first mutant of each fault")
    parser.add_argument("--only", type=int, help="read this one mutant here")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    kinds = {name: of_some(KINDS[name], options.of) for name in options.kind}
    if options.only is not None:
        return read_one(kinds[options.kind[0]], options)
    faults = 0
    for name, kind in kinds.items():
        start = time.perf_counter()
        report = run(kind, options.seed, options.first, options.count)
        rate = options.count / (time.perf_counter() - start)
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in report.outcomes.most_common())
        print(f"{name}: {options.count} mutants of seed {options.seed}, {rate:.0f} per second: {outcomes}")
        for what, indices in report.faults.items():
            faults += len(indices)
            print(f"  {len(indices)} x {what}  (--kind {name} --seed {options.seed} --only {indices[0]})")
            if options.save is not None:
                save(kind, options, indices[0])
    return 1 if faults else 0


def of_some(kind, word):
    """The kind with those of its seeds only whose names have a word."""
    return replace(kind, seeds=lambda: [seed for seed in kind.seeds() if word in getattr(seed, "name", "")])


def read_one(kind, options) -> int:
    data, original = mutant(kind, kind.seeds(), options.seed, options.only)
    print(f"{len(data)} bytes, of {getattr(original, 'name', original)!r:.200}")
    try:
        print(kind.read(data, original))
    except kind.allowed as error:
        print(f"{type(error).__name__}: {error}")
    return 0


def save(kind, options, index) -> None:
    options.save.mkdir(parents=True, exist_ok=True)
    data, _ = mutant(kind, kind.seeds(), options.seed, index)
    (options.save / f"{kind.name}-{options.seed}-{index}").write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
