"""A small campaign of kills and write errors, and one that must find what it is for."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="trainings are forked")
CAMPAIGN = Path(__file__).with_name("campaign.py")
IN_PLACE = """
import os, runpy, sys
from contextlib import contextmanager, suppress
import structsvm.model_file as model_file
import structsvm.files.new_file as new_file

@contextmanager
def in_place(path, mode="wb", **options):
    with suppress(FileNotFoundError):
        os.unlink(path)
    with new_file.open(path, "xb") as file:
        yield file

model_file.new_file = in_place
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def campaign(*args, code=None):
    command = [sys.executable, "-P", *(["-c", code] if code else []), CAMPAIGN, *map(str, args)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=1200, check=False)


@pytest.mark.slow
def test_nothing_is_lost():
    n_trials, n_trainings = trials_of(campaign())
    assert n_trials == n_trainings >= 42


def test_nothing_of_two_trainings_is_lost():
    assert trials_of(campaign("--count", 4, "--only", "tracking", "--only", "larank")) == [4, 2]


def trials_of(done):
    """Numbers of trials and of trainings of a campaign without failures."""
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = re.match(r"(\d+) trials of (\d+) trainings: ", done.stdout).groups()
    assert done.stdout.endswith(" 0 failures\n")
    assert done.stdout.count("\n") == 1 and done.stderr == ""
    return [*map(int, numbers)]


def test_files_that_are_written_in_place_are_found():
    done = campaign("--count", 6, "--only", "tracking", code=IN_PLACE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "is truncated" in done.stdout
