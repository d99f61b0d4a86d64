"""How many replicas a StatefulSet gets in this round (lifecycle.md 8.1).

Growing comes first when both are pending, and is `member.scale_out`'s; shrinking, and what is left of a shrinking that
the user took back, is `member.scale_in`'s.
"""

from dataclasses import dataclass

from apis.ordinals import slots_annotation
from kube.events import WARNING
from kube.objects import Json
from member.labels import DELETE_SLOTS
from member.naming import pod_name
from member.outcome import Failed, Refused, Waiting
from member.round import Round
from member.scale_in import ScaleIn, shrink, staying
from member.scale_out import ScaleOut, next_replicas
from member.status import SCALE, set_phase


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a component grows and shrinks."""

    out: ScaleOut
    in_: ScaleIn


@dataclass(frozen=True, slots=True)
class Size:
    """The replicas for now, and what keeps the StatefulSet from having those that are wanted."""

    replicas: int
    outcome: Waiting | Refused | Failed | None = None


def next_size(round_: Round, component: str, scaling: Scaling, body: Json, desired: Json) -> Size:
    """Decide on the replicas. Raises ApiError, TransportError, DataPlaneError."""
    there, wanted = body["spec"]["replicas"], desired["spec"]["replicas"]
    kept = min(there, wanted)
    stay, unfinished = staying(round_, component, scaling.in_, body, kept)
    if unfinished:
        return Size(there, unfinished)
    if stay < kept:
        set_phase(round_, component, SCALE)
        return _finish_leaving(round_, component, scaling, body, stay)
    if wanted < there:
        return Size(*shrink(round_, component, scaling.in_, body, wanted))
    return Size(*next_replicas(round_, component, scaling.out, body, desired))


def warn_of_slots(round_: Round, component: str, desired: Json, body: Json | None) -> None:
    """Tell, when it comes into the StatefulSet, that a list of ordinals to skip has no effect (4.4 BETTER)."""
    slots = _slots(desired)
    if slots is None or (body is not None and _slots(body) == slots):
        return
    what = (
        f"the annotation {slots_annotation(component)}={slots} has no effect: a StatefulSet always removes its highest "
        "ordinal; set the replicas alone, and remove the annotation"
    )
    round_.doors.recorder.event(round_.owner, WARNING, "DeleteSlotsIgnored", what)


def _slots(stateful_set: Json) -> str | None:
    slots: str | None = (stateful_set["metadata"].get("annotations") or {}).get(DELETE_SLOTS)
    return slots


def _finish_leaving(round_: Round, component: str, scaling: Scaling, body: Json, stay: int) -> Size:
    """Let go of what is too far gone to stay; it comes back empty when it is gone (F32, I32)."""
    replicas, outcome = shrink(round_, component, scaling.in_, body, stay)
    if not isinstance(outcome, Waiting):
        return Size(replicas, outcome)
    pod = pod_name(round_.tc, component, stay)
    what = f"{pod} had left before it was wanted again: it goes, and comes back empty; {outcome.message}"
    return Size(replicas, Waiting(outcome.reason, what, outcome.retry_after))
