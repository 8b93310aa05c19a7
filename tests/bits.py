"""A guard of redesigns: checksums of what every estimator learns and saves, under each set of kernels.

``python tests/bits.py > before`` records them; ``python tests/bits.py --against before`` says which differ (exit status
1), ``--only NAME`` looks at the cases whose name contains it. Checksums are those of one processor and environment.

Of each case of `tests/reference/cases.py`: one fit, its continuation from the file and on other data, a training
resumed from its checkpoint, a stream of two batches, and the same where C is chosen.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "reference"))
time.perf_counter = lambda: 0.0  # seconds are in the files


def halves(case):
    n = len(case.X) // 2
    return (0, n), (n, None)


def fitted(case, path):
    return case.fit()


def resumed(case, path):
    case.fit(**case.passes(1)).save(path, training_state=True)
    model = loaded(case, path).set_params(**case.make(**case.passes(2, warm_start=True)).get_params(deep=False))
    return case.train(model)


def warmed(case, path):
    return case.train(case.fit(warm_start=True), *halves(case)[1])


def checkpointed(case, path):
    case.fit(**case.passes(2, checkpoint=path))
    model = case.fit(**case.passes(4, checkpoint=path))
    path.unlink()
    return model


def streamed(case, path):
    model, (first, second) = case.make(), halves(case)
    classes = {} if case.strange is None or case.kind.__name__ == "SemanticParser" else {"classes": case.fit().classes_}
    case.train(model, *first, "partial_fit", **classes)
    return case.train(model, *second, "partial_fit")


def loaded(case, path):
    import structsvm

    return structsvm.load(path, **case.load)


def batched(case, path):
    return case.train(case.make(), method="partial_fit")


def sums_of(path):
    """Checksums of all of a model file but its history, whose points within a pass come by the clock."""
    from structsvm.arrays import checksum
    from structsvm.model_file import read_model

    model = read_model(path)
    arrays = {name: array for name, array in model.arrays.items() if "history." not in name}
    sums = {name: f"{array.dtype.str}{array.shape} {checksum(array.tobytes()):x}" for name, array in arrays.items()}
    params = model.meta.pop("params")
    about = {name: f"{checksum(repr(part).encode()):x}" for name, part in (("params", params), ("header", model.meta))}
    return about | {"order": list(arrays)} | sums


def record(only):
    """The checksums of all cases, by kind of training, in the kernels that the environment names."""
    from cases import CASES, CHOICES

    from structsvm.arrays import checksum

    ways = {"fit": fitted, "resumed": resumed, "warm": warmed, "checkpoint": checkpointed, "stream": streamed}
    found = {}
    for title, cases, its in (
        ("", CASES, ways),
        ("choice of ", CHOICES, {"fit": fitted, "warm": warmed, "stream": batched}),
    ):
        for name, case in cases.items():
            for way, train in its.items():
                key = f"{title}{name}: {way}"
                if only not in key or (way == "stream" and not case.is_stream):
                    continue
                if way == "checkpoint" and "checkpoint" not in case.shared:
                    continue
                with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = train(case, Path(folder) / "m")
                    model.save(Path(folder) / "m", training_state=True)
                    said = case.predicted(model) + case.predicted(loaded(case, Path(folder) / "m"))
                    found[key] = sums_of(Path(folder) / "m") | {"said": checksum(said.encode())}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--here", action="store_true", help="in this process, in the kernels of the environment")
    args = parser.parse_args()
    if args.here:
        print(json.dumps(record(args.only)))
        return 0
    command = [sys.executable, "-P", __file__, "--here", "--only", args.only]
    found = {
        kernels: json.loads(subprocess.run(command, env=os.environ | {"STRUCTSVM_KERNELS": kernels} | SEEDED,
                                           check=True, capture_output=True, text=True).stdout)
        for kernels in kernel_sets()
    }  # fmt: skip
    if args.against is None:
        print(json.dumps(found, indent=1))
        return 0
    before = json.loads(args.against.read_text())
    failed = [
        f"{kernels}: {key}: {', '.join(name for name in sums if before[kernels][key].get(name) != sums[name])}"
        for kernels, of_set in found.items()
        for key, sums in of_set.items()
        if before[kernels].get(key, sums) != sums  # a case that has come since has nothing to differ from
    ]
    print(*failed, f"{len(failed)} of {sum(map(len, found.values()))} differ", sep="\n")
    return int(bool(failed))


SEEDED = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}


def kernel_sets():
    """The baseline, and the best of the others."""
    from structsvm.execution._processor import available

    return (available()[0], available()[-1])


if __name__ == "__main__":
    sys.exit(main())
