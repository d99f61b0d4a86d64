"""`pd-transfer-leader` on a PD pod: another member leads, and with `delete-pod` it is restarted then."""

from dataclasses import replace

from apis import predicates
from apis.ordinals import desired_replicas
from kube.objects import Object
from member import labels, reach
from member.commands.annotating import withdraw
from member.commands.asking import BUSY, DELETE_POD, NONE, Command, expired
from member.commands.restarting import restart
from member.outcome import Done, Outcome, Refused, Waiting
from member.pd.upgrade import ROLLING, is_of, successor
from member.pods import pods_of
from member.round import Round
from member.status import NORMAL

TRANSFERRING = "TransferringPDLeader"

_TRANSFER = 1.0
"""Seconds within which PD moves the leader after it said so."""


def act(round_: Round, pod: Object, command: Command) -> Outcome:
    """One step of a transfer; the new leader is confirmed before the pod goes (I12).

    Raises DataPlaneError, ApiError, TransportError, LeaseExpired.
    """
    name = pod.metadata.name
    if expired(pod, labels.PD_EVICT_LEADER_EXPIRATION_TIME, round_.doors.clock.wall()):
        withdraw(round_, pod, (labels.PD_TRANSFER_LEADER, labels.PD_EVICT_LEADER_EXPIRATION_TIME))
        return Done(f"the time of {command.key} on {name} is over, or can't be read", "TransferLeaderExpired")
    if not predicates.in_phase(round_.tc, "pd", NORMAL):
        return Waiting("PDBusy", f"{name} hands over when PD is neither upgraded nor scaled", BUSY)
    return _stay_away(round_, name) if command.value == NONE else _go(round_, pod, command)


def _go(round_: Round, pod: Object, command: Command) -> Outcome:
    """Restart the pod when it does not lead. Those that are told so take turns: they would hand over to each other."""
    name = pod.metadata.name
    first = min(_told(round_, DELETE_POD), default=name)
    if name != first:
        return Waiting("PodsTakeTurns", f"{name} is restarted when {first} has been", BUSY)
    # what a rolling restart asks of a pod before it goes
    hold = ROLLING.prepare(round_, pod)
    if isinstance(hold, Waiting):
        return replace(hold, retry_after=_TRANSFER if hold.reason == TRANSFERRING else BUSY)
    return hold or restart(round_, pod, command, "another member leads PD, if there is one")


def _stay_away(round_: Round, pod: str) -> Outcome:
    """Have somebody lead who is not told to let go of it."""
    pd = reach.pd(round_)
    if not is_of(round_, pd.leader().name, pod):
        return Done(f"{pod} does not lead PD", "LeaderTransferred")
    told = _told(round_, NONE, DELETE_POD)
    members = pd.health(members=desired_replicas(round_.tc, "pd"))
    able = [each for each in members if each.healthy and not any(is_of(round_, each.name, name) for name in told)]
    to = successor(round_, pod, able)
    if to is None:
        return Refused("NoSuccessor", f"{pod} leads PD: no other member is healthy and not told to hand over", BUSY)
    pd.transfer_leader(to)
    return Waiting(TRANSFERRING, f"{pod} leads PD: waiting until {to} does", _TRANSFER)


def _told(round_: Round, *values: str) -> list[str]:
    """The pods that are told to hand over, with one of these values."""
    key = labels.PD_TRANSFER_LEADER
    return [pod.metadata.name for pod in pods_of(round_, "pd") if pod.metadata.annotations.get(key) in values]
