"""The one place that acts for decisions: it performs their actions, one after another.

    decision ── action ──▶ executor ── patch, DELETE, request ──▶ API server, servers of the database
        ▲                      │
        └── result, or error ──┘

Each action passes a door that checks the fence and logs the write, such as `kube.apply`.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from controllers.status_patch import patch_status
from kube.actions import (
    Action,
    AddFinalizer,
    Annotate,
    AnnotateAlone,
    Apply,
    Create,
    Decision,
    Emit,
    Merge,
    PatchStatus,
    RemoveFinalizer,
)
from kube.apply import Applier
from kube.events import EventRecorder

T = TypeVar("T")


def _unknown(action: Action[Any]) -> Any:
    # the name alone: an action may hold a password
    raise TypeError(f"the executor cannot perform {type(action).__name__}")


class Executor:
    """Drives decisions to their conclusion. Thread-safe."""

    def __init__(
        self, applier: Applier, recorder: EventRecorder, others: Callable[[Action[Any]], Any] = _unknown
    ) -> None:
        """`others` performs the actions that are not in `kube.actions`."""
        self._applier = applier
        self._recorder = recorder
        self._others = others

    def conclude(self, decision: Decision[T]) -> T:
        """Perform the actions of a decision; return its conclusion. Raises what the decision raises.

        The error of an action is raised in the decision, at the action.
        """
        result: object = None
        error: BaseException | None = None
        try:
            while True:
                action = decision.send(result) if error is None else decision.throw(error)
                result, error = None, None
                try:
                    result = self._perform(action)
                except BaseException as raised:  # a decision sees every error, as if it had called the server itself
                    error = raised
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            # else an error, through its traceback and this frame, would form a reference cycle
            error = None

    def _perform(self, action: Action[Any]) -> Any:  # noqa: PLR0911  (one for each action)
        match action:
            case Apply(resource, desired, cached, applied, replaces):
                return self._applier.apply(resource, desired, cached, applied=applied, replaces=replaces)
            case Create(resource, desired):
                return self._applier.create(resource, desired)
            case Merge(resource, desired):
                return self._applier.merge(resource, desired)
            case Annotate(resource, cached, annotations):
                return self._applier.annotate(resource, cached, annotations)
            case AnnotateAlone(resource, cached, annotations):
                return self._applier.annotate_alone(resource, cached, annotations)
            case AddFinalizer(resource, cached, finalizer):
                return self._applier.add_finalizer(resource, cached, finalizer)
            case RemoveFinalizer(resource, cached, finalizer):
                return self._applier.remove_finalizer(resource, cached, finalizer)
            case PatchStatus(resource, cached, before, after):
                return patch_status(self._applier, resource, cached, before, after)
            case Emit(about, kind, reason, message):
                return self._recorder.event(about, kind, reason, message)
            case _:
                return self._others(action)
