"""A capture's handover of ownership and tables before its pod goes (lifecycle.md 7.7, 8.8).

If a capture just ends, its tables are not replicated until the owner has noticed it after some seconds. So another
capture becomes the owner first, and moves the tables to others while replication continues. The user sets the time
limit, `gracefulShutdownTimeout`; this process measures it (F14, F44).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from apis.accessor import component
from apis.images import NEWEST, order
from apis.times import stamp
from dataplane.errors import DataPlaneError
from dataplane.ticdc import Capture, CaptureStatus
from kube.actions import Emit
from kube.events import WARNING
from kube.objects import Object
from member.actions import MoveTables, ResignOwner
from member.context import ReconcileContext
from member.naming import address_book, pod_name
from member.outcome import Waiting, poll_interval
from member.ticdc.status import client
from ports import duration

_FIRST = (6, 3, 0)
"""The first version in which captures can hand over tables."""

_APART = 2
"""Captures whose major versions differ by this much are incompatible."""

_DEFAULT_TIMEOUT = "10m"

_WAY_OUT = "the log of the owner's pod says why; to continue sooner, shorten spec.ticdc.gracefulShutdownTimeout"


@dataclass(frozen=True, slots=True)
class Departure:
    """A Ready pod that is to go.

    `for_what` distinguishes stopwatches; `others_stay` is True if another capture is expected to remain.
    """

    ctx: ReconcileContext
    pod: Object
    for_what: str
    others_stay: bool

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self.pod.metadata.name

    @property
    def to_version(self) -> str:
        """The version in the spec."""
        return component(self.ctx.tc, "ticdc").version


async def hand_over(going: Departure) -> Waiting | None:
    """Move ownership and tables away, one step per reconcile; None if nothing is left, or after the timeout.

    Raises LeaseExpired.
    """
    ctx, spec = going.ctx, going.ctx.tc.spec.ticdc
    limit = duration.seconds((spec and spec.graceful_shutdown_timeout) or _DEFAULT_TIMEOUT)
    elapsed = ctx.memory.stopwatches.look(going.for_what, going.pod.metadata.uid, ctx.deps.clock)
    if elapsed.seconds >= limit:
        what = f"capture of pod {going.name} has not given up its tables after {limit:.0f} s; the pod goes anyway"
        await Emit(ctx.owner, WARNING, "GracefulShutdownTimeout", what)
        return None
    try:
        what = await _step(going)
    except DataPlaneError as error:
        what = f"cannot hand over what pod {going.name} does: {error}"
    until = stamp(elapsed.since + timedelta(seconds=limit))
    if not what:
        return None
    message, again = f"{what}, timeout at {until}", poll_interval(elapsed.seconds)
    return Waiting("HandingOver", message, again, step=what, way_out=_WAY_OUT)


def forget(ctx: ReconcileContext, pod: Object, for_what: str) -> None:
    """Reset the time limit of a pod that stays after all."""
    ctx.memory.stopwatches.forget(for_what, pod.metadata.uid)


def can_hand_over(running: str, wanted: str) -> bool:
    """True if a capture of the running version can hand over its tables to captures of the wanted version.

    Versions that cannot be compared are tried: the timeout limits the cost.
    """
    old, new = order(running), order(wanted)
    if running == wanted or NEWEST in (old, new):
        return True
    return old >= _FIRST and new[0] < old[0] + _APART


async def _step(going: Departure) -> str:
    """Take the next step; returns what the handover waits for, empty if it is complete.

    Raises DataPlaneError, LeaseExpired.
    """
    own = client(going.ctx, going.name)
    status = own.status()
    captures = own.captures() if can_hand_over(status.version, going.to_version) else None
    if captures is None:
        return ""
    owner = next((capture for capture in captures if capture.is_owner), None)
    if missing := _missing(going, captures, status, owner):
        return missing
    if owner is None or len(captures) == 1:
        return ""
    if owner.id == status.id:
        asked = await ResignOwner(own)
        return f"waiting until another capture is the owner in place of pod {going.name}" if asked else ""
    if left := await MoveTables(own, status.id):
        return f"moving {left} tables away from pod {going.name}"
    return _ill(going.ctx, owner)


def _missing(going: Departure, captures: Sequence[Capture], status: CaptureStatus, owner: Capture | None) -> str:
    """What is missing for a handover: another capture, this capture's registration, or an owner; otherwise empty."""
    if not any(capture.id != status.id for capture in captures):
        return f"waiting for another capture that takes over from pod {going.name}" if going.others_stay else ""
    if not any(capture.id == status.id for capture in captures):
        return f"waiting until the capture of pod {going.name} is known to the others"
    return "" if owner else f"waiting until a capture, as pod {going.name} lists them, is the owner"


def _ill(ctx: ReconcileContext, owner: Capture) -> str:
    """The wait for the owner, if it is a pod of this cluster, to report that it is healthy; otherwise empty."""
    ordinal = address_book(ctx.tc).ordinal_of("ticdc", owner.address)
    if ordinal is None or client(ctx, pod_name(ctx.tc, "ticdc", ordinal)).healthy():
        return ""
    return f"waiting until the owner, {owner.address}, says that all goes well"
