"""The stages of a reconcile of any kind: each ends in an outcome, and a failure of one does not stop the others."""

from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import structlog
from structlog.contextvars import bind_contextvars, reset_contextvars

from controllers.errors import IgnoreError, RequeueError
from controllers.executor import Executor
from kube.actions import Decision
from kube.apply import ForeignOwner, OwnerChanged, OwnerGone
from kube.errors import ApiError, Conflict
from member.outcome import NOT_OURS, Failed, Outcome, Waiting, of_others
from ports.fencing import LeaseExpired
from ports.transport import RemoteError, TransportError

log = structlog.get_logger(__name__)

C = TypeVar("C")


@dataclass(frozen=True)
class Stage(Generic[C]):
    """One step of a reconcile whose context is a C; `name` is also the label of its errors in the metrics.

    `run` returns the outcome, or a decision whose actions the executor performs.
    """

    name: str
    run: Callable[[C], Outcome | Decision[Outcome]]


Steps: TypeAlias = Generator[Stage[C], Outcome, None]
"""The stages of a reconcile, one after another. Each is sent its outcome before the next one is chosen."""

OnDefect: TypeAlias = Callable[[str, Exception], None]
"""Called with the name of a stage and the unexpected exception that it raised."""

EXPECTED = (ApiError, TransportError, RemoteError, ForeignOwner)
"""Errors that servers may cause in a stage. The name of the class becomes the reason of the failure."""

INTERNAL_ERROR = "InternalError"
"""The reason of a stage that raised an unexpected exception; the API server's own errors may have it as well."""

_OUTDATED = {OwnerGone: "OwnerDeleted", OwnerChanged: "SpecChanged"}
"""The reasons of a stage that read the owner live and found a change, which the cache will show in a moment."""

_OF_THE_WHOLE = (LeaseExpired, RequeueError, IgnoreError)
"""Exceptions that end the whole reconcile: this process no longer leads, or the stage requests it."""


def run_stages(steps: Steps[C], ctx: C, executor: Executor, on_defect: OnDefect) -> None:
    """Run each stage when its turn comes. Raises like `attempt`."""
    with closing(steps):
        try:
            stage = next(steps)
            while True:
                stage = steps.send(attempt(stage, ctx, executor, on_defect))
        except StopIteration:
            return


def attempt(stage: Stage[C], ctx: C, executor: Executor, on_defect: OnDefect) -> Outcome:
    """Run a stage, perform its actions, and turn its exceptions into an outcome, so that the other stages still run.

    Raises LeaseExpired, RequeueError, IgnoreError.
    """
    bound = bind_contextvars(stage=stage.name)  # a third of the time of `bound_contextvars`
    try:
        found = stage.run(ctx)
        return executor.conclude(found) if isinstance(found, Coroutine) else found
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
        return Failed(INTERNAL_ERROR, f"internal error: {_described(error)}; the stack trace is in the operator's log")
    finally:
        reset_contextvars(**bound)


def broken_off(observations: Mapping[str, Outcome]) -> dict[str, Failed]:
    """The observations that failed with an unexpected exception, after which the status may be wrong."""
    failed = {name: seen for name, seen in observations.items() if isinstance(seen, Failed)}
    return {name: seen for name, seen in failed.items() if seen.reason == INTERNAL_ERROR}


def _described(error: Exception) -> str:
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name
