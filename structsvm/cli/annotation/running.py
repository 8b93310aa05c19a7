"""Running a server until Ctrl-C, on a port that is known before it starts."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging

LOOPBACK = "127.0.0.1"


@contextmanager
def server_needed(command: str) -> Iterator[None]:
    """Within it, a missing library of servers is an ImportError that says how to install it."""
    try:
        import starlette
        import uvicorn  # noqa: F401
    except ImportError:
        raise ImportError(f"{command} needs a server: pip install 'structured-svm[annotate]'") from None
    del starlette
    yield


def run(app: Any, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve an application until Ctrl-C or a signal to end; `started` is told the address.

    Raises
    ------
    OSError
        If the port is taken, or the address is not of this machine.
    """
    import logging

    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen(128)
        except OSError as error:
            raise OSError(f"cannot serve on {host}, port {port}: {error.strerror or error}") from None
        number = listening.getsockname()[1]
        started(f"http://{f'[{host}]' if family == socket.AF_INET6 else host}:{number}")
        # Clients in Java ask for HTTP/2 first (Upgrade: h2c) and take HTTP/1.1. Of uvicorn's two parsers h11 reads the
        # body of such a request; httptools, which is preferred where it is installed, loses it.
        config = uvicorn.Config(app, http="h11", log_level="warning", access_log=False, lifespan="off", ws="none")
        logging.getLogger("uvicorn.error").addFilter(_is_no_upgrade)
        uvicorn.Server(config).run(sockets=[listening])


def _is_no_upgrade(record: logging.LogRecord) -> bool:
    """Whether a message says more than that another protocol is not spoken here, and which package would add it."""
    message = record.getMessage()
    return not message.startswith(("Unsupported upgrade request", "No supported WebSocket library"))
