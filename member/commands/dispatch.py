"""From a pod to its command: `replace-volume` first, then the one of its component (lifecycle.md 13)."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kube.objects import Object
from member import labels
from member.commands import evict_leader, graceful_shutdown, replace_volume, transfer_leader
from member.commands.annotations import Command, commands_of
from member.context import ReconcileContext
from member.evidence import same_cluster
from member.outcome import Done, Outcome, Refused

Act: TypeAlias = Callable[[ReconcileContext, Object, Command], Outcome]

_ACTS: Mapping[str, Act] = {
    labels.REPLACE_VOLUME: replace_volume.act,
    labels.REPLACEMENT_BEGUN: replace_volume.act,
    labels.PD_TRANSFER_LEADER: transfer_leader.act,
    labels.EVICT_LEADER: evict_leader.act,
    labels.EVICT_LEADER_FOR_RESIZE: evict_leader.act,
    labels.TIDB_GRACEFUL_SHUTDOWN: graceful_shutdown.act,
}
"""In the order in which they are looked at; the first is what is done."""


def act(ctx: ReconcileContext, name: str, pod: Object | None) -> Outcome:
    """One step of what a pod is told; `pod` is None when the cache has none of that name.

    Raises DataPlaneError, ApiError, TransportError, LeaseExpired.
    """
    told = {command.key: command for command in commands_of(pod)} if pod else {}
    command = next((told[key] for key in _ACTS if key in told), None)
    evicts = command is not None and _ACTS[command.key] is evict_leader.act
    if command is None and name not in ctx.status.tikv.evict_leader:
        return Done()
    if same_cluster(ctx) is None:
        return Refused("ForeignPD", "PD answers for another cluster than this one's: commands of pods are not followed")
    ended = Done() if evicts else evict_leader.end(ctx, name, pod)
    if pod is None or command is None or pod.metadata.deletion_timestamp:
        return ended
    return _ACTS[command.key](ctx, pod, command)
