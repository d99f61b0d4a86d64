"""The server of the page: a thread that answers on loopback."""

import errno
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from cli.failures import Failure
from cli.tidb.session import Session
from cli.tidb.ui.application import application
from cli.tidb.ui.guard import TOKEN, Guard
from cli.tidb.ui.rehearsals import Rehearsals

_ADDRESS = "127.0.0.1"

_PATIENCE = 2
"""Seconds for pending answers once the server is to end."""


@contextmanager
def serving(
    session: Session, port: int, rehearsals: Rehearsals, *, writes: bool = False, playground: bool = False
) -> Iterator[str]:
    """Serve within the block, whose value is the address with the token. Port 0 is any free one.

    `rehearsals` must find the session's API server; they end with the block. Without `writes` the page changes no
    cluster; only the server of a sandbox has a `playground`. Raises Failure.
    """
    token = secrets.token_urlsafe(32)
    with _listening(port) as listener:
        port = listener.getsockname()[1]
        guard = Guard(application(session, rehearsals, writes=writes, playground=playground), token, port)
        # the log has no requests: their addresses may contain the token
        config = uvicorn.Config(
            guard,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_PATIENCE,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="ui")
        thread.start()
        try:
            yield f"http://{_ADDRESS}:{port}/?{TOKEN}={token}"
        finally:
            rehearsals.close()
            server.should_exit = True
            thread.join()


def _listening(port: int) -> socket.socket:
    try:
        return socket.create_server((_ADDRESS, port))
    except OSError as error:
        way_out = "; name another --port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else ""
        raise Failure(f"cannot listen on {_ADDRESS}:{port}: {error.strerror}{way_out}") from None
