"""Waits with progress: on a terminal a table that redraws, elsewhere a line per change."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console

from cli.failures import Failure
from cli.progress import Row, view
from cli.tidb.session import Session
from kube.errors import InternalError, ServerTimeout, TooManyRequests
from ports.stopping import Stop
from ports.transport import TransportError

_EVERY = 1.0
"""Seconds between two checks."""

_PATIENCE = 60.0
"""Seconds without an answer of the API server after which the wait is given up."""


_GOES_ON = "the operation continues"


@dataclass(frozen=True, slots=True)
class Sight:
    """The current state: rows, the last one for the whole; and whether it is finished."""

    rows: Sequence[Row]
    is_done: bool


def wait_until_done(session: Session, name: str, look: Callable[[], Sight], timeout: float | None) -> None:
    """Poll until finished. Raises Failure after `timeout` seconds or without answers, and what `look` raises."""
    try:
        _wait(session, name, look, timeout)
    except KeyboardInterrupt:
        print(f"no longer waiting for {name}; {_GOES_ON}", file=sys.stderr)
        raise


def _wait(session: Session, name: str, look: Callable[[], Sight], timeout: float | None) -> None:
    clock, begun = session.clock, session.clock.now()
    answered, last = begun, ""
    with view(_console(session)) as shown:
        while True:
            try:
                sight = look()
            except (TransportError, InternalError, ServerTimeout, TooManyRequests) as error:
                if clock.now() - answered > _PATIENCE:
                    raise Failure(f"gave up waiting for {name}: {error}; {_GOES_ON}") from None
            else:
                answered, last = clock.now(), str(sight.rows[-1].state)
                shown.show(name, sight.rows)
                if sight.is_done:
                    return
            if timeout is not None and clock.now() - begun >= timeout:
                raise Failure(f"{name} is not done after {timeout:g} s: {last}; {_GOES_ON}")
            Stop().wait(clock, _EVERY)


def _console(session: Session) -> Console:
    """Where answers go or, to keep them readable for programs, beside it."""
    width = session.output.width if session.output.colours else None
    if session.output.is_for_people:
        return Console(file=sys.stdout, width=width, no_color=not session.output.colours)
    return Console(file=sys.stderr, no_color=True, force_terminal=False)
