"""The steps that remove a member from a quorum: never through the leaving one, never while it leads (lifecycle.md 8.3).

Pure functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from member.outcome import Wait


@dataclass(frozen=True, slots=True)
class Voter:
    """A member; `ordinal` is None for a member in another cluster."""

    id: int
    name: str
    ordinal: int | None
    healthy: bool
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """No such member exists."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Transfer the leadership to another member first."""

    to: Voter


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the member."""

    voter: Voter


@dataclass(frozen=True, slots=True)
class StandsIn:
    """The member must stay, as only `others` healthy ones would remain, fewer than wanted."""

    others: int


Step: TypeAlias = Gone | Wait | StandsIn | Transfer | Remove


def next_step(voters: Sequence[Voter], ordinal: int, wanted: int = 0, of: str = "PD") -> Step:
    """The next step to remove this ordinal's member; `wanted` healthy own members must remain (F28, I8, I9, I12)."""
    leaving = next((voter for voter in voters if voter.ordinal == ordinal), None)
    if leaving is None:
        return Gone()
    rest = [voter for voter in voters if voter is not leaving]
    ill = [voter for voter in rest if not voter.healthy]
    healthy = len(rest) - len(ill)
    if healthy <= len(rest) // 2:
        return Wait(f"{healthy} of the {len(rest)} {of} members that would remain are healthy, which is not a quorum")
    if ill and leaving.healthy:
        names = ", ".join(voter.name or "a member that has not started" for voter in ill)
        return Wait(f"waiting for {names} to be healthy before removing {leaving.name} from {of}")
    own = sum(voter.healthy and voter.ordinal is not None for voter in rest)
    if own < wanted and leaving.name:
        # a member without a name has never started and serves no client
        return StandsIn(own)
    return Transfer(_successor(rest, ordinal)) if leaving.leads else Remove(leaving)


def _successor(rest: Sequence[Voter], ordinal: int) -> Voter:
    """The next leader: the healthy own member with the lowest ordinal, or the highest if the lowest is above `ordinal`.

    Without own healthy members, one in another cluster.
    """
    healthy = [voter for voter in rest if voter.healthy]
    own = sorted((voter.ordinal, voter.name, voter) for voter in healthy if voter.ordinal is not None)
    if not own:
        return min(healthy, key=lambda voter: voter.name)
    return own[0][2] if own[0][0] < ordinal else own[-1][2]
