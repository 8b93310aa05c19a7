"""A small process between the benchmark and a command, so that the command's peak memory is its own.

A forked process starts with the peak of its parent and keeps it over exec: measured from the
benchmark itself, which holds whole data sets, every command would seem at least as large as those.

Reads ``{"arguments": [...], "limit": seconds or null}`` from standard input, writes what
`common.measure.Command` holds, and the exit status.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

GRACE = 30.0  # seconds that an interrupted command has to save its results before it is killed


def main():
    request = json.load(sys.stdin)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        answer = run(request["arguments"], request["limit"], out, err)
        for name, stream in (("stdout", out), ("stderr", err)):
            stream.seek(0)
            answer[name] = stream.read().decode("utf-8", "replace")
    json.dump(answer, sys.stdout)


def run(arguments, limit, out, err):
    begin = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=out, stderr=err)
    late = threading.Event()

    def stop(how):
        late.set()
        process.send_signal(how)

    waits = [] if limit is None else [(limit, signal.SIGINT), (limit + GRACE, signal.SIGKILL)]
    timers = [threading.Timer(seconds, stop, [how]) for seconds, how in waits]
    for timer in timers:
        timer.start()
    _, status, used = os.wait4(process.pid, 0)
    for timer in timers:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "status": process.returncode,
        "wall": time.perf_counter() - begin,
        "cpu": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss * unit / 1e6,
        "in_time": not late.is_set(),
    }


if __name__ == "__main__":
    main()
