"""Waiting for what takes long, with progress: a table that redraws on a terminal, elsewhere a line for each change."""

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
"""Seconds between two looks."""

_PATIENCE = 60.0
"""Seconds for which an API server may not answer before waiting is given up."""


_GOES_ON = "what was begun goes on"


@dataclass(frozen=True, slots=True)
class Sight:
    """How it stands: what is shown, the last row being that of the whole; and whether it is over."""

    rows: Sequence[Row]
    is_done: bool


def wait_until_done(session: Session, name: str, look: Callable[[], Sight], timeout: float | None) -> None:
    """Look until it is done. Raises Failure after `timeout` seconds, or when nobody answers; what `look` raises."""
    try:
        _wait(session, name, look, timeout)
    except KeyboardInterrupt:
        print(f"not waiting for {name} any more; {_GOES_ON}", file=sys.stderr)
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
    """Where the answer goes, or, so that programs can read that, beside it."""
    width = session.output.width if session.output.colours else None
    if session.output.is_for_people:
        return Console(file=sys.stdout, width=width, no_color=not session.output.colours)
    return Console(file=sys.stderr, no_color=True, force_terminal=False)
