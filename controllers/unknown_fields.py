"""The condition that lists the fields of a spec that the operator does not know (`apis.unknown_fields`).

True     the message names each of them, and suggests the right name
False    the user has corrected all of them

The operator passes unknown fields on to Kubernetes, because a newer version may know them.
"""

from collections.abc import Sequence
from datetime import datetime

from apis.model import Model
from apis.unknown_fields import UNKNOWN_FIELDS, unknown_fields
from controllers.conditions import CORRECTED, listed, with_condition
from kube.events import WARNING, EventRecorder
from kube.objects import Json, Object, condition_of


class UnknownFields:
    """The unknown fields of one object, in the memory of one process. Not thread-safe."""

    def __init__(self) -> None:
        self._judged: tuple[str, int] | None = None
        self._message = ""

    def judge(self, owner: Object, model: type[Model]) -> None:
        """Find the unknown fields of an object's spec, once for each generation."""
        generation = owner.metadata.uid, owner.metadata.generation
        if generation != self._judged:
            self._judged, self._message = generation, sentence(owner, model)

    def reported(
        self,
        owner: Object,
        conditions: Sequence[Json],
        now: datetime,
        recorder: EventRecorder,
        *,
        update_time: bool = False,
    ) -> Sequence[Json]:
        """The conditions of the object, with the unknown fields added. Records an event if these are new."""
        if not self._message and not condition_of(conditions, UNKNOWN_FIELDS):
            return conditions
        value = (True, UNKNOWN_FIELDS, self._message) if self._message else CORRECTED
        after = with_condition(conditions, UNKNOWN_FIELDS, value, now, update_time=update_time)
        if self._message and after != conditions:
            recorder.event(owner, WARNING, UNKNOWN_FIELDS, self._message)
        return after


def sentence(owner: Object, model: type[Model]) -> str:
    """All unknown fields of the spec of an object in a sentence; empty if there are none."""
    found = _found(owner, model)
    return f"Kubernetes ignores the fields that it does not know: {listed(found)}" if found else ""


def _found(owner: Object, model: type[Model]) -> Sequence[str]:
    try:
        spec = owner.decode().get("spec")
    except RecursionError:  # the decoding of the model reports this
        return ()
    return [str(field) for field in unknown_fields({"spec": spec}, model)]
