"""Kills and write errors while models are trained with checkpoints and saved: nothing may be lost.

    python tests/faults/campaign.py --seed 0 --count 700

Each trial trains in processes of its own, of which the first ones meet a fault, and the last one none. The model must
be, bit for bit, that of a training without faults; after each process the checkpoint and the model file must be whole
files, the checkpoint no older than before, and no temporary file may be left but by a kill. Faults are

- ``moment``: SIGKILL at a random moment of training or saving;
- ``write``: SIGKILL in the middle of a random write, or beside a random flush or rename;
- ``ENOSPC`` and ``EIO``: a random write, flush or rename fails, and those after it for a while or for ever;
- ``full``: the disk is full, but for a random number of bytes (with --small FOLDER, on a small file system, a tmpfs).

Nothing is printed but failures, and at the end one line of counts; the exit status is 1 if there was a failure.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))

from cases import CASES

from structsvm import CuttingPlane, LaRank, LatentSVM, PathSearch
from structsvm.datasets import make_ambig_house, make_concept_world, make_dependency_trees
from structsvm.files import new_file
from structsvm.model_file import read_model
from structsvm.tasks import (
    ArcFeatures,
    ConceptLabeler,
    DependencyParser,
    GraphLabeler,
    MultilabelClassifier,
    MultivariateClassifier,
    Ospas,
    Ranker,
    SemanticParser,
    SequenceLabeler,
)
from structsvm.tasks.registry import names_of

# ---- what is trained ----------------------------------------------------------------------------

rng = np.random.default_rng(0)
LENGTHS = rng.integers(1, 20, 150)
CHAINS = [rng.normal(size=(t, 10)) for t in LENGTHS], [rng.integers(0, 4, t) for t in LENGTHS]
Y = np.arange(400) % 4
X = rng.normal(size=(400, 8)) + np.eye(8)[Y]
HOUSE = make_ambig_house(150, level=2, random_state=0)
WORDS, CONCEPTS, WORLDS = make_concept_world(300, random_state=0)
SCENES = list(zip(WORDS, WORLDS, strict=True))
PARTLY = [[None if k % 3 == 0 else int(v) for k, v in enumerate(labels)] for labels in CHAINS[1]]
FEW = [part[:30] for part in CHAINS]
TREES = make_dependency_trees(60, max_length=10, random_state=0)
SPANS = [[(k, min(k + 2, len(x)), str(y[k])) for k in range(0, len(x), 2)] for x, y in zip(*CHAINS, strict=True)]
GRIDS = [np.eye(2)[Y[16 * k : 16 * k + 16].reshape(4, 4) % 2] + rng.normal(size=(4, 4, 2)) for k in range(25)]
CELLS = [Y[16 * k : 16 * k + 16].reshape(4, 4) % 2 for k in range(25)]
SETS = [{int(label), int(k % 3)} for k, label in enumerate(Y)]


def labeler(**params):
    return SequenceLabeler(random_state=0, **params).fit(*CHAINS)


def path(checkpoint):
    search = PathSearch(SequenceLabeler(random_state=0), C_min=0.01, C_max=1.0, random_state=0, checkpoint=checkpoint)
    return search.fit(*CHAINS).best_estimator_


TRAINEES = {
    "larank": lambda c: labeler(C=1.0, tol=1e-3, max_iter=15, checkpoint=c),
    "passive-aggressive": lambda c: labeler(C=1.0, solver="passive_aggressive", max_iter=25, checkpoint=c),
    "n-slack": lambda c: labeler(C=1.0, solver="cutting_plane", tol=2e-2, checkpoint=c),
    "one-slack": lambda c: SequenceLabeler(
        solver=CuttingPlane(C=1.0, form="one_slack", tol=0.1, random_state=0, checkpoint=c)
    ).fit(*CHAINS),
    "frank-wolfe": lambda c: labeler(C=1.0, solver="frank_wolfe", tol=None, max_iter=15, checkpoint=c),
    "perceptron": lambda c: labeler(solver="perceptron", max_iter=25, checkpoint=c),
    "ospas": lambda c: SemanticParser(method=Ospas(refine=1), max_iter=6, random_state=0, checkpoint=c).fit(
        HOUSE.sentences, HOUSE.bags
    ),
    "concepts": lambda c: ConceptLabeler(max_iter=6, random_state=0, checkpoint=c).fit(SCENES, CONCEPTS),
    "path": path,
    "latent": lambda c: SequenceLabeler(
        solver=LatentSVM(LaRank(C=1.0, tol=1e-2, random_state=0, checkpoint=c), rounds=6)
    ).fit(CHAINS[0], PARTLY),
    "sum of losses": lambda c: SequenceLabeler(max_iter=4, random_state=0, checkpoint=c).fit(*FEW),
    "dependency trees": lambda c: DependencyParser(
        C=0.1, max_iter=20, features=ArcFeatures(arc_bits=10, row_bits=5), random_state=0, checkpoint=c
    ).fit(TREES),
    "hybrid trees": lambda c: SemanticParser(max_iter=6, random_state=0, checkpoint=c).fit(
        HOUSE.sentences[:50], HOUSE.bags[:50]
    ),
}

TRAINEES |= {
    "segments": lambda c: SequenceLabeler(segments=True, C=0.1, max_iter=15, random_state=0, checkpoint=c).fit(
        CHAINS[0], SPANS
    ),
    **{
        f"graphs, {method}": lambda c, method=method: GraphLabeler(
            C=0.1, method=method, max_iter=15, random_state=0, checkpoint=c
        ).fit(GRIDS, CELLS)
        for method in ("junction", "cut", "relaxed", "expansion")
    },
    "sets of labels": lambda c: MultilabelClassifier(C=0.1, max_iter=15, random_state=0, checkpoint=c).fit(X, SETS),
    "rankings": lambda c: Ranker(C=0.1, max_iter=15, random_state=0, checkpoint=c).fit(X, Y, group=[8] * 50),
    "losses of a sample": lambda c: MultivariateClassifier("f1", C=0.1, tol=1e-4, random_state=0, checkpoint=c).fit(
        X, Y > 2
    ),
}


def machine(case, c):
    """A machine of labels, on more rows than those of its case."""
    return case.make(**case.passes(25, checkpoint=c)).fit(X, Y % len(set(case.y.tolist())))


MACHINES = names_of("multiclass") + names_of("binary")
TRAINEES |= {name: partial(machine, case) for name, case in CASES.items() if case.kind.__name__ in MACHINES}
FIRST = {case.kind: name for name, case in reversed(CASES.items()) if "checkpoint" in case.shared}
TRAINEES |= {
    f"{name}, the case": lambda c, case=CASES[name]: case.fit(**case.passes(15, checkpoint=c))
    for kind, name in FIRST.items()
    if kind.__name__ not in MACHINES
}

# ---- faults -------------------------------------------------------------------------------------

KILL, PIECE, NEVER = -1, 2**14, 10**9


class Fault:
    """A fault: of the steps of writing files (pieces, flushes, renames), those from `first` up to `last` fail."""

    def __init__(self, kind: int = KILL, first: int = NEVER, last: int = NEVER) -> None:
        self.kind, self.first, self.last, self.n_steps = kind, first, last, 0

    def step(self, before=None) -> None:
        """Count one step, or fail in it, after what is `before`."""
        self.n_steps += 1
        if self.first < self.n_steps <= self.last:
            if before is not None:
                before()
            if self.kind == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(self.kind, os.strerror(self.kind))

    def install(self) -> None:
        """Count from now on, in this process."""
        fault, replace, fsync = self, os.replace, os.fsync

        class Failing(io.FileIO):
            def write(self, data):
                data = memoryview(data).cast("B")[:PIECE]
                fault.step(lambda: super(Failing, self).write(data[: len(data) // 2]))
                return super().write(data)

        def opened(file, mode="r", **options):
            if "x" not in mode:
                return open(file, mode, **options)
            binary = io.BufferedWriter(Failing(file, "xb"))
            return binary if "b" in mode else io.TextIOWrapper(binary, **options)

        def failing_fsync(descriptor):
            fault.step()
            fsync(descriptor)

        def failing_replace(old, new):
            fault.step()
            replace(old, new)
            if fault.kind == KILL:  # a rename that is done has not failed
                fault.step()

        new_file.open, os.fsync, os.replace = opened, failing_fsync, failing_replace


# ---- trials -------------------------------------------------------------------------------------

DONE, REFUSED, WRONG = 0, 3, 1  # exit statuses: a file could not be written; anything else
SECONDS = 120.0  # after which a process counts as hanging


class Failure(Exception):
    pass


def start(trainee, folder: Path, fault: Fault) -> int:
    """Train and save in a new process; returns its id."""
    with warnings.catch_warnings():
        # Python 3.12 warns of forks beside other threads, whose locks the child might need: it needs none.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    status = WRONG
    try:
        os.chdir(folder)
        warnings.simplefilter("ignore")
        fault.install()
        model = trainee("c")
        model.save("m")
        status = DONE
    except OSError:
        status = REFUSED
    except BaseException:
        traceback.print_exc()
    finally:
        if fault.first == NEVER:
            (folder.parent / "steps").write_text(str(fault.n_steps))
        os._exit(status)


def ended(child: int, kill_after: float | None = None) -> int:
    """Wait for a process, kill it after so many seconds if it is there; returns its status, as Popen has it."""
    begin = time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        passed = time.monotonic() - begin
        if kill_after is not None and passed >= kill_after:
            os.kill(child, signal.SIGKILL)
            kill_after = None
        if passed > SECONDS:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise Failure(f"the process hangs for {SECONDS:.0f} s")
        time.sleep(0.0005)


def bits(file: Path):
    """All that was learnt, of a model file: without seconds, and without what the cache of a killed process met."""
    model = read_model(file)
    arrays = {name: array for name, array in model.arrays.items() if "history" not in name}
    for name in ("state.run", "margin.state.run"):
        if name in arrays:
            arrays[name] = np.delete(arrays[name], 1)
    if model.kind in ("binary", "multiclass"):
        arrays.pop("state.counters", None)
    results = [model.meta["result"], (model.meta.get("margin") or {}).get("result", {})]
    results = [{name: value for name, value in result.items() if name != "seconds"} for result in results]
    return (
        results,
        model.meta.get("choice"),
        {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()},
    )


def progress(file: Path):
    """How far a checkpoint is: None if there is none."""
    if not file.exists():
        return (-1, -1)
    model = read_model(file)
    arrays = model.arrays
    run = arrays["state.run"] if model.kind == "path" else arrays["run"]
    return model.meta.get("stage") == "refit", model.meta.get("n_points", 0), int(run[0])


class Reference:
    """A training without faults: its model, its time and its steps."""

    def __init__(self, trainee, folder: Path) -> None:
        self.trainee = trainee
        (folder / "whole").mkdir()
        begin = time.monotonic()
        if ended(start(trainee, folder / "whole", Fault())) != DONE:
            raise Failure("the training without faults failed")
        self.seconds = time.monotonic() - begin
        self.n_steps = int((folder / "steps").read_text())
        self.bits, self.size = bits(folder / "whole" / "m"), (folder / "whole" / "m").stat().st_size
        if not (folder / "whole" / "c").exists():
            raise Failure("the training without faults left no checkpoint: it is too short")
        shutil.rmtree(folder / "whole")


OLD = b"the model before"


def trial(reference: Reference, kind: str, folder: Path, chance: random.Random, counts: Counter) -> None:
    """One trial in an empty folder; raises Failure."""
    if chance.random() < 0.5:
        (folder / "m").write_bytes(OLD)
    before, leaves = progress(folder / "c"), False
    for _ in range(chance.randint(1, 3)):
        status = faulty(reference, kind, folder, chance)
        killed = status == -signal.SIGKILL
        if status == WRONG or (status < 0 and not killed) or (killed and kind not in ("moment", "write")):
            raise Failure(f"exit status {status}")
        counts[kind] += killed or status == REFUSED
        counts["errors that training survived"] += status == DONE and kind not in ("moment", "write")
        leaves = leaves or killed
        check(reference, folder, may_leave=leaves, done=status == DONE)
        after = progress(folder / "c")
        if after < before:
            raise Failure(f"the checkpoint is of {after}, the one before was of {before}")
        before = after
        if status == DONE:
            return
    if ended(start(reference.trainee, folder, Fault())) != DONE:
        raise Failure("the last training, without a fault, failed")
    check(reference, folder, may_leave=leaves, done=True)


def faulty(reference: Reference, kind: str, folder: Path, chance: random.Random) -> int:
    """Train with a fault; returns the status."""
    if kind == "moment":
        return ended(start(reference.trainee, folder, Fault()), chance.uniform(0.0, reference.seconds))
    first = chance.randrange(reference.n_steps)
    if kind == "full":
        filler = folder.parent / "filler"
        fill(filler, chance.randrange(4 * reference.size))
        try:
            return ended(start(reference.trainee, folder, Fault()))
        finally:
            filler.unlink()
    code, n = (KILL, 1) if kind == "write" else (getattr(errno, kind), chance.choice([1, 20, NEVER]))
    return ended(start(reference.trainee, folder, Fault(code, first, first + n)))


def fill(filler: Path, free: int) -> None:
    """Fill the file system, but for so many bytes."""
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    os.truncate(filler, max(filler.stat().st_size - free, 0))


def check(reference: Reference, folder: Path, *, may_leave: bool, done: bool) -> None:
    """Every file is whole, and is what it must be; raises Failure."""
    for file in folder.iterdir():
        if file.name not in ("c", "m") and not (may_leave and file.name.startswith(".structsvm-")):
            raise Failure(f"a file {file.name} is left")
    model = folder / "m"
    is_new = model.exists() and model.read_bytes() != OLD
    if done != is_new and (done or not may_leave):  # a kill may come between the rename and the end
        raise Failure(f"the training {'ended' if done else 'failed'}, and the model file says otherwise")
    if is_new and bits(model) != reference.bits:
        raise Failure("the model is not that of a training without faults")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=len(TRAINEES), help="trials; default: one of each")
    parser.add_argument("--only", choices=TRAINEES, action="append", help="train these only")
    parser.add_argument("--small", type=Path, help="a folder on a file system of a few MB, to fill")
    options = parser.parse_args()
    chance, counts, failures = random.Random(options.seed), Counter(), 0
    kinds = ["moment", "write", "moment", "write", "ENOSPC", "EIO"] + ["full"] * (options.small is not None)
    names, references = options.only or list(TRAINEES), {}
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory(dir=options.small) as small:
        for k in range(options.count):
            name, kind = names[k % len(names)], kinds[(k % len(names) + k // len(names)) % len(kinds)]
            folder = Path(small if kind == "full" else scratch) / "trial"
            try:
                if name not in references:
                    references[name] = Reference(TRAINEES[name], Path(scratch))
                folder.mkdir()
                trial(references[name], kind, folder, chance, counts)
            except Exception as error:
                failures += 1
                print(f"trial {k} of seed {options.seed}: {name}, {kind}: {error!r}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    found = ", ".join(f"{counts[kind]} {kind}" for kind in dict.fromkeys(kinds))
    survived = counts["errors that training survived"]
    print(
        f"{options.count} trials of {len(names)} trainings: {counts['moment'] + counts['write']} kills, "
        f"{sum(counts[kind] for kind in ('ENOSPC', 'EIO', 'full')) + survived} trainings with write errors "
        f"({survived} of them finished, and saved their model); {found}; {failures} failures"
    )
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
