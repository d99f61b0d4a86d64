"""Where tests make the server misbehave: each request passes a function that may name a fault."""

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.apiserver.audit import Call
from sandbox.apiserver.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one request: first `delay` seconds pass, then the refusal or the loss happens.

    `refusal`: answered instead of doing anything. `lose_request`: the connection ends before anything is done.
    `lose_answer`: the request is carried out, then the connection ends.
    """

    delay: float = 0.0
    refusal: Refusal | None = None
    lose_request: bool = False
    lose_answer: bool = False


Faults = Callable[[Call], Fault | None]
"""Asked once for each request, in the thread that serves it."""


def no_faults(_: Call) -> None:
    """Everything works."""
