"""The steps of a reconcile, whatever its kind: each answers how it stands, and fails alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import structlog
from structlog.contextvars import bound_contextvars

from controllers.errors import IgnoreError, RequeueError
from kube.apply import ForeignOwner, OwnerChanged, OwnerGone
from kube.errors import ApiError, Conflict
from member.apply.names_of_others import NOT_OURS, of_others
from member.outcome import Failed, Outcome, Waiting
from ports.fencing import LeaseExpired
from ports.transport import RemoteError, TransportError

log = structlog.get_logger(__name__)

C = TypeVar("C")


@dataclass(frozen=True)
class Stage(Generic[C]):
    """One step of a reconcile whose context is a C; `name` is also the label of its errors in the metrics."""

    name: str
    run: Callable[[C], Outcome]


Attempt: TypeAlias = Callable[[Stage[C], C], Outcome]
"""Runs a stage and answers for it when it raises."""

OnDefect: TypeAlias = Callable[[str, Exception], None]
"""Gets the name of a stage that raised what nobody expected, and what it raised."""

EXPECTED = (ApiError, TransportError, RemoteError, ForeignOwner)
"""What a server may answer a stage with. The name of the class becomes the reason of the failure."""

INTERNAL_ERROR = "InternalError"
"""The reason of a stage that raised what nobody expected; the API server's own errors may have it, too."""

_OUTDATED = {OwnerGone: "OwnerDeleted", OwnerChanged: "SpecChanged"}
"""The reasons of those that find the owner, read live, another than in the cache, which shows it in a moment."""

_OF_THE_WHOLE = (LeaseExpired, RequeueError, IgnoreError)
"""What ends the reconcile, not a stage of it: this process leads no more, or the stage says so."""


def attempt(stage: Stage[C], ctx: C, on_defect: OnDefect) -> Outcome:
    """Run a stage; what it raises is its answer, so that the others run all the same.

    Raises LeaseExpired, RequeueError, IgnoreError.
    """
    with bound_contextvars(stage=stage.name):
        try:
            return stage.run(ctx)
        except Conflict as error:
            # F3: the decision was made on an outdated object; the next reconcile decides again
            return Waiting("Conflict", f"another client changed the object at the same time: {error}", retry_after=0.5)
        except (OwnerGone, OwnerChanged) as error:
            return Waiting(_OUTDATED[type(error)], str(error))
        except NOT_OURS as error:
            return of_others(error)
        except EXPECTED as error:
            log.debug("stage failed", error=str(error))
            return Failed(type(error).__name__, str(error))
        except _OF_THE_WHOLE:
            raise
        except Exception as error:
            log.exception("stage raised an unexpected exception", stage=stage.name)
            on_defect(stage.name, error)
            return Failed(
                INTERNAL_ERROR, f"internal error: {_described(error)}; the stack trace is in the operator's log"
            )


def broken_off(observed: Outcome | None) -> Failed | None:
    """The failure of an observation that raised what nobody expected: what the status says is not known to hold."""
    return observed if isinstance(observed, Failed) and observed.reason == INTERNAL_ERROR else None


def _described(error: Exception) -> str:
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name
