"""The command line as the tests call it: in a process of its own, or in this one."""

import contextlib
import subprocess
import sys

from click.testing import CliRunner

COMMAND = [sys.executable, "-m", "structsvm"]


def run(*args, cwd, status=0, **kwargs):
    """Run; the errors that a user can make are one line on standard error and no traceback."""
    done = subprocess.run([*COMMAND, *map(str, args)], cwd=cwd, capture_output=True, timeout=120, **kwargs)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == status, (out, err)
    assert "Traceback" not in err
    if status == 1:
        assert err.startswith("Error: ") and err.count("\n") == 1, err
    return out, err


def run_here(folder, *args, status=0, text=None):
    """Standard output and error; the errors that a user can make are one line."""
    from structsvm.cli import main

    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, [str(a) for a in args], input=text, catch_exceptions=False)
    assert done.exit_code == status, (done.stdout, done.stderr)
    if status == 1:
        assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stdout, done.stderr
