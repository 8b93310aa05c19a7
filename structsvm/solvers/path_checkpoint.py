"""The checkpoint of a `PathSearch`: its points so far, and the state of the training that is running."""

from __future__ import annotations

import os

import numpy as np

from structsvm.checkpoint import Checkpoint, describe
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.result import Result

KIND = "path"

# The trainings of a search: one per C of the path, and the last one.
WALK, REFIT = "walk", "refit"


class PathCheckpoint(Checkpoint):
    """Writes what a search has done after every so many passes, and after each C.

    It takes the place of the path that is the `checkpoint` of a solver: one run after the other.

    Parameters
    ----------
    path, every : see `Checkpoint`
    search : dict
        Parameters of the search, for the header: what must be the same when it resumes.
    order : ndarray of shape (n_samples,), int64
        The order of the examples, of which the first are held out. A file that exists has its own.

    Attributes
    ----------
    points : list of (float, float, float, Result)
        C, reach, score and result of the finished trainings.
    stage : str
        Which training runs: WALK or REFIT.
    """

    def __init__(self, path, every, search, order):
        super().__init__(path, every)
        self.search, self.order = search, order
        self.points: list = []
        self.stage = WALK
        self.run = self.file = None
        if os.path.lexists(self.path):
            self.read(read_model(self.path, kind=KIND))

    def read(self, file):
        """Restore order and points from a file; its training state waits for a run."""
        self.check_same(file.meta, {"search": self.search})
        try:
            order = np.array(file.arrays["order"])
            if order.dtype != np.int64 or not np.array_equal(np.sort(order), np.arange(len(self.order))):
                raise ValueError("array 'order' must hold each example once")
            points = [
                (*(float(value) for value in values), Result.from_dict(result, file.under(f"point{k}.")))
                for k, (*values, result) in enumerate(file.meta["points"])
            ]
            if file.meta["stage"] not in (WALK, REFIT) or type(file.meta["first"]) is not int:
                raise ValueError(f"a training {file.meta['stage']!r:.40} from pass {file.meta['first']!r:.40} on")
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"{self.path}: not a sound checkpoint: {error}") from error
        self.file, self.order, self.points, self.stage = file, order, points, file.meta["stage"]

    def restore(self, run, last):
        self.about, self.run, self.first = about_any_c(run), run, run.n_iter
        if self.file is not None and self.file.meta["stage"] == self.stage:
            file, self.file = self.file, None
            self.check_same(file.meta, self.about)
            # Of the C before, whose training has ended, or of this one.
            is_running = len(self.points) == file.meta["n_points"] and not file.meta["is_finished"]
            self.set_run(run, file.under("state."), adapt=not is_running)
            self.first = file.meta["first"] if is_running else run.n_iter
            last += self.first
        self.last = last
        return last

    def end(self, point):
        """The training of a C has ended."""
        self.points.append(point)
        self.write(self.run, is_finished=True)

    def write(self, run, is_finished=False):
        meta = {
            **self.about,
            "search": self.search,
            "points": [[*values, result.to_dict()] for *values, result in self.points],
            "n_points": len(self.points),
            "stage": self.stage,
            "first": self.first,
            "is_finished": is_finished,
        }
        arrays = {"order": self.order} | {f"state.{name}": array for name, array in run.get_state().items()}
        for k, (*_, result) in enumerate(self.points):
            arrays |= {f"point{k}.{name}": column for name, column in result.history.items()}
        write_model(self.path, KIND, meta, arrays)


def about_any_c(run):
    """As `describe`, whatever C is."""
    about = describe(run)
    name, parameters = about["solver"]
    parameters.pop("C", None)
    return {"solver": [name, parameters], "problem": about["problem"][:3]}
