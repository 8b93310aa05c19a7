"""Calls of foreign compiled code, which checks no signals, in threads that are abandoned once work is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from structsvm.execution._stop import Job

T = TypeVar("T")


def aside(call: Callable[[], T]) -> T:
    """Return what `call` returns, made in a thread of its own; KeyboardInterrupt once the job at work is stopped.

    The thread then ends by itself, in its own time. What `call` raises is raised here.
    """
    found: list[tuple[T | None, BaseException | None]] = []

    def work() -> None:
        try:
            found.append((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised where the call came from
            found.append((None, error))
        done.set()

    done, job = threading.Event(), Job()  # a job within the one that the caller is at work on, if any
    try:
        threading.Thread(target=work, daemon=True).start()
    except RuntimeError:  # no memory for a thread
        work()
    while not done.wait(0.02):
        if job.stopped:
            raise KeyboardInterrupt("the job was stopped")
    result, error = found[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
