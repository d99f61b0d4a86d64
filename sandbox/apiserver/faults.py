"""Faults of the API server: each request passes a function that may return one."""

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.apiserver.audit import Call
from sandbox.apiserver.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one request: `delay` seconds pass, then the refusal or loss happens.

    `refusal` is the answer instead of any effect. `lose_request` ends the connection before any effect, `lose_answer`
    after the effect.
    """

    delay: float = 0.0
    refusal: Refusal | None = None
    lose_request: bool = False
    lose_answer: bool = False


Faults = Callable[[Call], Fault | None]
"""Called once for each request, in the thread that serves it."""


def no_faults(_: Call) -> None:
    """Return no fault."""
