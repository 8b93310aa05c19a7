"""Threads of matrix products, of which NumPy's library would start one per processor for each product.

These threads spin while they wait for one another. Beside a busy process one of them waits for a processor first, and a
product of microseconds takes milliseconds.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Protocol


class _Library(Protocol):
    """A library of products."""

    def get_num_threads(self) -> int: ...
    def set_num_threads(self, num_threads: int) -> object: ...


class _Limits:
    """Limits of all blocks at work, in any thread, as the libraries have one number for the process."""

    def __init__(self) -> None:
        self.at_work: dict[object, int] = {}
        self.libraries: list[_Library] = []
        self.before: list[int] | None = None  # the libraries' own numbers, to restore after the last block
        self.renew_lock()

    def renew_lock(self) -> None:
        self.lock = threading.Lock()

    def add(self, block: object, n: int) -> None:
        with self.lock:
            if self.before is None:
                self.libraries = _libraries(len(sys.modules))
                self.before = [library.get_num_threads() for library in self.libraries]
            self.at_work[block] = n
            self._set()

    def remove(self, block: object) -> None:
        """Remove a block's limit, if Ctrl-C has let it be added."""
        with self.lock:
            self.at_work.pop(block, None)
            if self.before is not None:
                self._set()
            if not self.at_work:
                self.before = None

    def _set(self) -> None:
        lowest = min(self.at_work.values(), default=None)
        for library, own in zip(self.libraries, self.before or (), strict=True):
            number = own if lowest is None else min(own, lowest)
            if number != library.get_num_threads():
                # `set_num_threads` of version 3.8 obeys one thread alone; here a lock arbitrates.
                getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


_limits = _Limits()
if hasattr(os, "register_at_fork"):  # a thread that held the lock stayed in the parent
    os.register_at_fork(after_in_child=_limits.renew_lock)


@contextmanager
def product_threads(n: int) -> Iterator[None]:
    """Let products take at most n threads, and no more than they would; blocks within may only lower the number."""
    block = object()
    try:
        _limits.add(block, n)
        yield
    finally:
        try:
            _limits.remove(block)
        except KeyboardInterrupt:  # a limit that stays would hold for the process
            _limits.remove(block)
            raise


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> list[_Library]:
    """The libraries of products that this process has loaded, with so many modules: a search takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    found: list[_Library] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found
