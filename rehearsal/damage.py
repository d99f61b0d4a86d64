"""What a loss does to a cluster, judged from the frames of a drill. Pure.

Times are seconds since the loss.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from rehearsal.forecast import End, Floor, Forecast, Frame, Regions, Step, forecast

Hurt: TypeAlias = Literal["without_copy", "without_majority", "leaderless", "without_spare"]
HURTS: Sequence[Hurt] = ("without_copy", "without_majority", "leaderless", "without_spare")
"""What may happen to regions (`rehearsal.forecast.Regions`), worst first."""


@dataclass(frozen=True, slots=True)
class Spell:
    """A time in which regions are hurt, at most `most` of them; `seconds` is None if it lasts to the end."""

    hurt: Hurt
    begins: float
    seconds: float | None
    most: int
    total: int


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which a component has too few serving pods; `seconds` is None if it lasts to the end."""

    component: str
    begins: float
    seconds: float | None
    ready: int
    needed: int


@dataclass(frozen=True, slots=True)
class Failover:
    """The operator's replacement of a lost pod.

    `at` is when the operator records the loss, `substitute` the pod that it starts, if any, and `serves` when that is
    Ready.
    """

    pod: str
    component: str
    at: float
    substitute: str = ""
    serves: float | None = None


@dataclass(frozen=True, slots=True)
class Damage:
    """What a loss does to one cluster.

    `whole` is when every pod serves again, each region has its spare replica, and the change is done; None if that does
    not happen. `end` and `message` are a forecast's, `reason` is the last one of Progressing.
    """

    end: End
    reason: str
    message: str
    whole: float | None
    outages: Sequence[Outage] = ()
    spells: Sequence[Spell] = ()
    failovers: Sequence[Failover] = ()
    floors: Sequence[Floor] = ()
    steps: Sequence[Step] = ()

    @property
    def stops(self) -> bool:
        """True if something does not serve for longer than regions take to elect a leader."""
        return bool(self.outages) or any(spell.hurt in ("without_copy", "without_majority") for spell in self.spells)

    @property
    def severity(self) -> tuple[float, ...]:
        """Greater is worse: first data without a copy, then what stops, then data without a spare, then how long."""
        forever = float("inf")
        of = {hurt: [spell for spell in self.spells if spell.hurt == hurt] for hurt in HURTS}

        def seconds(spells: Sequence[Spell | Outage]) -> float:
            return sum(forever if spell.seconds is None else spell.seconds for spell in spells)

        return (
            max((spell.most for spell in of["without_copy"]), default=0),
            seconds([*of["without_majority"], *self.outages]),
            forever if self.whole is None else 0.0,
            seconds(of["without_spare"]),
            self.whole or 0.0,
        )


def damage(frames: Sequence[Frame], struck: float) -> Damage:
    """The damage of a loss at `struck` seconds; the first frame is the one before the change."""
    found = forecast(frames)
    at = next((number for number, each in enumerate(frames) if each.at >= struck), len(frames) - 1)
    since, last = frames[at:], frames[-1]
    steps = [step for step in found.steps if step.ends is None or step.ends > struck]
    return Damage(
        end=found.end,
        reason=last.reason,
        message=found.message,
        whole=_recovery_time(frames, since, struck),
        outages=list(_outages(found, last, struck)),
        spells=[spell for hurt in HURTS for spell in _spells(frames[0], since, hurt, struck)],
        failovers=list(_failovers(since, found, struck)),
        floors=[replace(floor, lowest=min(frame.ready(floor.component) for frame in since)) for floor in found.floors],
        steps=[replace(step, begins=step.begins - struck, ends=_after(step.ends, struck)) for step in steps],
    )


def _after(at: float | None, struck: float) -> float | None:
    return None if at is None else at - struck


def _outages(found: Forecast, last: Frame, struck: float) -> Iterator[Outage]:
    """The gaps that do not end before the loss. Whether TiKV serves is a question of its regions."""
    for gap in found.gaps:
        ends, begins = gap.begins + gap.seconds, max(gap.begins, struck)
        lasts = ends >= last.at and last.ready(gap.component) < gap.needed
        if gap.component != "tikv" and (ends > struck or lasts):
            yield Outage(gap.component, begins - struck, None if lasts else ends - begins, gap.ready, gap.needed)


def _spells(first: Frame, since: Sequence[Frame], hurt: Hurt, struck: float) -> Iterator[Spell]:
    """The times in which more regions are hurt than before the change."""
    usual = _count(first.regions, hurt)
    begins, most, total = None, 0, 0
    for frame in since:
        count = _count(frame.regions, hurt)
        if count > usual:
            begins = frame.at if begins is None else begins
            most, total = max(most, count), frame.regions.total if frame.regions else 0
        elif begins is not None:
            yield Spell(hurt, begins - struck, frame.at - begins, most, total)
            begins, most = None, 0
    if begins is not None:
        yield Spell(hurt, begins - struck, None, most, total)


def _count(regions: Regions | None, hurt: Hurt) -> int:
    match regions, hurt:
        case None, _:
            return 0
        case Regions(without_copy=count), "without_copy":
            return count
        case Regions(without_majority=count), "without_majority":
            return count
        case Regions(leaderless=count), "leaderless":
            return count
        case _:
            return regions.without_spare


def _failovers(since: Sequence[Frame], found: Forecast, struck: float) -> Iterator[Failover]:
    """Each lost pod with the next pod of its component that starts."""
    known = dict(since[0].lost)
    starts = [step for step in found.steps if step.act == "starts" and step.begins >= struck]
    for frame in since:
        for pod, component in frame.lost.items():
            if pod in known:
                continue
            known[pod] = component
            of = next((step for step in starts if step.component == component and step.begins >= frame.at), None)
            if of is None:
                yield Failover(pod, component, frame.at - struck)
            else:
                starts.remove(of)
                yield Failover(pod, component, frame.at - struck, of.pod, _after(of.ends, struck))


def _recovery_time(frames: Sequence[Frame], since: Sequence[Frame], struck: float) -> float | None:
    """The seconds until everything is whole for good; None if it is not in the end."""
    whole = None
    for frame in since:
        if not is_whole(frame, frames[0]):
            whole = None
        elif whole is None:
            whole = frame.at - struck
    return whole


def is_whole(frame: Frame, first: Frame) -> bool:
    """True if every pod serves but for those that are recorded as lost, and no region is hurt that was not before."""
    lost = list(frame.lost.values())
    wanted = {component: count - lost.count(component) for component, count in frame.replicas.items()}
    return all(frame.ready(component) >= count for component, count in wanted.items()) and all(
        _count(frame.regions, hurt) <= _count(first.regions, hurt) for hurt in HURTS
    )
