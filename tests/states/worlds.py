"""Small worlds in which the decisions about a roll, a scale-in and a failover are tried until nothing new happens.

A world is a value. Its `step` asks the operator's decision. Its `successors` are the world after that act or, while the
operator waits, after progress or a loss.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, Self

from dataplane.pd import Store
from member.failover import quorum
from member.failover.quorum import Situation
from member.failover.witnesses import Failing
from member.lifecycle import roll_steps
from member.lifecycle.roll_steps import RollingPod
from member.outcome import Wait
from member.stores import scaling
from member.stores.kind import TIKV_STORES, Needs
from member.stores.scaling import Others


class World(Protocol):
    """A state of the cluster, as far as one decision sees it."""

    def step(self) -> object:
        """The step that the operator takes in this state."""

    def successors(self) -> Iterator[Self]:
        """The states that may follow."""

    @property
    def is_over(self) -> bool:
        """True if the operation has ended."""


_OLD, _BROKEN, _AWAY, _SETTLING, _NEW = "old", "broken", "away", "settling", "new"


@dataclass(frozen=True, slots=True)
class Roll:
    """The pods of a roll, from ordinal 0: on the old revision, broken on it, restarting, starting to serve, or done."""

    pods: tuple[str, ...] = (_OLD, _OLD, _OLD)

    def step(self) -> roll_steps.Step:
        """See `World`."""
        return roll_steps.next_step([self._pod(ordinal, phase) for ordinal, phase in enumerate(self.pods)])

    def successors(self) -> Iterator[Self]:
        """See `World`."""
        match self.step():
            case roll_steps.Prepare(pod) | roll_steps.Restart(pod) | roll_steps.Replace(pod):
                yield self._with(pod.ordinal, _AWAY)
                return
        for ordinal, phase in enumerate(self.pods):
            if phase in (_AWAY, _SETTLING):
                yield self._with(ordinal, _SETTLING if phase == _AWAY else _NEW)
            if phase == _OLD and _BROKEN not in self.pods:
                yield self._with(ordinal, _BROKEN)

    @property
    def is_over(self) -> bool:
        """See `World`."""
        return isinstance(self.step(), roll_steps.Finished)

    def _with(self, ordinal: int, phase: str) -> Self:
        return replace(self, pods=(*self.pods[:ordinal], phase, *self.pods[ordinal + 1 :]))

    @staticmethod
    def _pod(ordinal: int, phase: str) -> RollingPod:
        return RollingPod(
            name=f"tikv-{ordinal}",
            ordinal=ordinal,
            exists=phase != _AWAY,
            ready=phase in (_OLD, _SETTLING, _NEW),
            updated=phase in (_AWAY, _SETTLING, _NEW),
            unmet_condition="serves again" if phase == _SETTLING else "",
        )


@dataclass(frozen=True, slots=True)
class ScaleIn:
    """The removal of a TiKV store.

    `up` of the `wanted` other stores are Up, and `silent` ones are Disconnected. PD keeps three replicas.
    """

    wanted: int = 3
    state: str = "Up"
    leaders_gone: bool = False
    up: int = 3
    silent: int = 0

    def step(self) -> scaling.Step:
        """See `World`."""
        store = Store(4, "tikv-3:20160", self.state, region_count=10)
        others, needs = Others(self.up, range(self.silent)), Needs(3, "PD keeps three replicas", "lower max-replicas")
        return scaling.next_step(
            TIKV_STORES, store, "tikv-3", others, needs, leaders_gone=self.leaders_gone, wanted=self.wanted
        )

    def successors(self) -> Iterator[Self]:
        """See `World`."""
        match self.step():
            case scaling.TakeOffline():
                yield replace(self, state="Offline")
                return
            case scaling.Evict():
                yield replace(self, leaders_gone=True)
            case Wait() if self.state == "Offline":
                yield replace(self, state="Tombstone")
        if self.up == self.wanted:
            yield replace(self, up=self.up - 1, silent=1)
        elif self.silent:
            yield replace(self, silent=0)
        else:
            yield replace(self, up=self.wanted)

    @property
    def is_over(self) -> bool:
        """See `World`."""
        return self.state == "Tombstone"


_WELL, _ILL, _LOST = "well", "ill", "lost"
_SINCE = datetime(2026, 1, 1, tzinfo=UTC)
_PERIOD = 300.0


@dataclass(frozen=True, slots=True)
class Failover:
    """PD with `size` members, of which two may be lost; `limit` may be replaced at a time.

    `members` are the phases of the two: well, ill for a short time, lost. `record` is the pod with a record; its member
    is registered as long as the record `is_open`. The phase of the substitute is empty as long as there is none.
    """

    limit: int = 1
    size: int = 3
    members: tuple[str, str] = (_ILL, _WELL)
    record: str = ""
    is_open: bool = False
    substitute: str = ""

    def step(self) -> object:
        """See `World`."""
        names = ("pd-1", "pd-2")
        lost = [_failing(name, phase) for name, phase in zip(names, self.members, strict=True) if phase != _WELL]
        return quorum.next_step(
            Situation(
                lost=lost,
                failing=[each for each in lost if each.pod != self.record],
                recorded={self.record} - {""},
                open_record=self.record if self.is_open else None,
                open_record_is_over=self.is_open and self.record not in {each.pod for each in lost},
                all_healthy=not lost,
                enough_serve=not lost,
                lost_substitutes=[_failing("pd-3", _LOST)] if self.substitute == _LOST else [],
                awaited="pd-3 runs" if self.substitute == "starting" else "",
                has_majority=self._healthy * 2 > self._total,
                limit=self.limit,
                period=_PERIOD,
            )
        )

    @property
    def _total(self) -> int:
        return self.size + (self.substitute in (_WELL, _LOST)) - bool(self.record and not self.is_open)

    @property
    def _healthy(self) -> int:
        gone = self.record and not self.is_open
        own = sum(phase == _WELL for phase in self.members)
        return (
            self.size
            - 2
            + own
            + (self.substitute == _WELL)
            - bool(gone and self.members[self.record == "pd-2"] == _WELL)
        )

    def successors(self) -> Iterator[Self]:
        """See `World`."""
        match self.step():
            case quorum.RecordFailure(failing):
                yield replace(self, record=failing.pod, is_open=True, substitute=self.substitute or "starting")
            case quorum.Replace():
                yield replace(self, is_open=False)
            case quorum.Recover():
                yield replace(self, record="", is_open=False, substitute="")
            case quorum.DropRecord():
                yield replace(self, record="", is_open=False)
            case _:
                yield from self._changed()

    def _changed(self) -> Iterator[Self]:
        one, other = self.members
        yield from (replace(self, members=(phase, other)) for phase in _next_phases(one))
        if self.record == "pd-1":
            yield from (replace(self, members=(one, phase)) for phase in _next_phases(other))
        if self.substitute:
            yield replace(self, substitute={"starting": _WELL, _WELL: _LOST, _LOST: _WELL}[self.substitute])

    @property
    def is_over(self) -> bool:
        """See `World`."""
        return self.members == (_WELL, _WELL) and not self.record


def _next_phases(phase: str) -> tuple[str, ...]:
    return {_WELL: (_ILL,), _ILL: (_LOST, _WELL), _LOST: (_WELL,)}[phase]


def _failing(pod: str, phase: str) -> Failing:
    return Failing(pod, pod, _SINCE, _PERIOD if phase == _LOST else 1.0)
