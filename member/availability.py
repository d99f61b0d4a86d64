"""What does not work of a cluster, what still does, and why: verdicts on what one reconcile saw (lifecycle.md 2.3).

Pure. A member of a quorum that does not answer is not lost for that alone: it is lost when Kubernetes or its volume
says so. Silence without such a witness means that the operator cannot see, and the verdict says that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from apis.components import DM_CLUSTER, TIDB_CLUSTER, ComponentType, Outage, component_types

NO_SUCH_CLUSTER, NO_PD, BAD_TLS = "NoSuchCluster", "NoPD", "BadTLS"
"""Reasons that are causes in themselves, whatever else does not work because of them."""

REASONS = frozenset({NO_SUCH_CLUSTER, NO_PD, BAD_TLS}).union(
    *(row.outage.reasons for of in (TIDB_CLUSTER, DM_CLUSTER) for row in component_types(of) if row.outage)
)
"""Every reason by which a condition Ready says that something is out of service."""

_NAMED = 5
"""So many members are named in a sentence."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One component is out of service, or the operator cannot see whether it is.

    `sentence` says in a user's words what does not work and what still does, and `detail` adds what servers or
    Kubernetes said of it. `failed` are the servers, by pod where they have one here, that something keeps from serving.
    """

    component: str
    reason: str
    sentence: str
    detail: str = ""
    failed: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Both, the sentence first."""
        return f"{self.sentence} {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class Server:
    """A member, store or server. `trouble` is what keeps it from serving, empty where nothing is known to."""

    name: str
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A component as one reconcile saw it.

    `servers` are its members, stores or servers as last listed. Kubernetes reports `ready` of `wanted` pods Ready.
    `answer` is what asking it gave instead of an answer; `leaderless`: a member said that there is no leader;
    `was_lost`: the verdict of the last reconcile was that its quorum is lost.
    """

    row: ComponentType
    servers: Sequence[Server]
    ready: int
    wanted: int
    answer: str = ""
    leaderless: bool = False
    was_lost: bool = False

    @property
    def failed(self) -> list[Server]:
        """Those that something keeps from serving."""
        return [each for each in self.servers if each.trouble]

    @property
    def pods(self) -> str:
        """What Kubernetes reports."""
        return f"Kubernetes reports {self.ready} of {self.wanted} pods Ready"


def of_silent_quorum(seen: Seen) -> Verdict | None:
    """The verdict on members of which none answered with a leader; None for a component without a quorum."""
    row, total, lost = seen.row, len(seen.servers), seen.failed
    if row.outage is None:
        return None
    running = total - len(lost)
    if total and (running * 2 <= total or seen.was_lost):
        return _quorum_lost(seen, row.outage, running)
    if seen.leaderless:
        what = f"{row.title} has no leader, though {running} of {total} members are running"
        sentence = f"{what}. {row.outage.effect} Check that they can reach each other."
        return Verdict(row.name, row.outage.leaderless, sentence, seen.answer)
    well = seen.ready * 2 > seen.wanted
    what = f"The operator cannot reach {row.title}{', though' if well else ':'} {seen.pods}"
    sentence = f"{what}. Whether it serves is unknown; check NetworkPolicies and DNS."
    return Verdict(row.name, row.outage.unreachable, sentence, seen.answer)


def _quorum_lost(seen: Seen, outage: Outage, running: int) -> Verdict:
    """The verdict holds until a leader answers: members that start, or wait in their start script, are no quorum."""
    row, total = seen.row, len(seen.servers)
    page = "docs/lost-quorum.md" if row.of == TIDB_CLUSTER else f"docs/reasons/dm.md#{outage.reason.lower()}"
    if running * 2 <= total:
        verb = "is" if running == 1 else "are"
        what = f"{row.title} has lost its quorum: {running} of {total} members {verb} running"
        detail = f"Lost: {_names(seen.failed)}."
    else:
        what = f"{row.title} has lost its quorum: {running} of {total} members are running again, and none leads yet"
        detail = seen.answer
    failed = tuple(each.name for each in seen.failed)
    return Verdict(row.name, outage.reason, f"{what}. {outage.effect} See {page}.", detail, failed)


def of_stores(seen: Seen, replicas: int) -> Verdict | None:
    """The verdict on stores of regions that have `replicas` replicas each; None while every region has its quorum."""
    row, total, down = seen.row, len(seen.servers), seen.failed
    placed = min(replicas, total)
    # a region with an even number of replicas loses its quorum with half of them
    if row.outage is None or not down or len(down) < (placed + 1) // 2:
        return None
    if len(down) == total:
        return _none_serves(seen)
    what = f"{len(down)} of {total} {row.title} stores are down, so regions with most replicas there have no quorum"
    sentence = f"{what}. Reads and writes of these regions fail; other regions are served."
    return Verdict(row.name, row.outage.reason, sentence, f"Down: {_names(down)}.")


def of_servers(seen: Seen) -> Verdict | None:
    """The verdict on servers that serve each by itself; None while one of them does."""
    if seen.row.outage is None or len(seen.failed) < len(seen.servers):
        return None
    return _none_serves(seen)


def _none_serves(seen: Seen) -> Verdict | None:
    row, down = seen.row, seen.failed
    if row.outage is None:
        return None
    detail = f"Down: {_names(down)}." if down else ""
    if seen.wanted and seen.ready >= seen.wanted:
        what = f"No {row.title} answers, though {seen.pods}"
        sentence = f"{what}. Either it does not serve, or it cannot be reached; read the logs of its pods."
        return Verdict(row.name, row.outage.reason, sentence, detail)
    return Verdict(row.name, row.outage.reason, f"No {row.title} serves: {seen.pods}. {row.outage.effect}", detail)


def _names(servers: Sequence[Server]) -> str:
    more = f" and {len(servers) - _NAMED} more" if len(servers) > _NAMED else ""
    return ", ".join(f"{each.name} ({each.trouble})" for each in servers[:_NAMED]) + more
