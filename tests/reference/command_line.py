"""The command line as the tests call it: in this process, or in one of its own."""

import contextlib
import subprocess
import sys

from click.testing import CliRunner

COMMAND = [sys.executable, "-m", "structsvm"]


def checked(out, err, ended, status):
    """Standard output and error; the errors that a user can make are one line and no traceback."""
    assert ended == status, (out, err)
    assert "Traceback" not in err
    if status == 1:
        assert err.startswith("Error: ") and err.count("\n") == 1, err
    return out, err


def run(folder, *args, status=0, text=None):
    from structsvm.cli import main

    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, [str(a) for a in args], input=text, catch_exceptions=False)
    return checked(done.stdout, done.stderr, done.exit_code, status)


def run_process(folder, *args, status=0, text=None, env=None):
    """For what a process adds: its start, its environment, its streams, its exit status."""
    given = text.encode() if isinstance(text, str) else text
    command = [*COMMAND, *map(str, args)]
    done = subprocess.run(command, cwd=folder, input=given, env=env, capture_output=True, timeout=120, check=False)
    return checked(done.stdout.decode(), done.stderr.decode(), done.returncode, status)
