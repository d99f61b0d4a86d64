"""Verdicts on outages: what fails, what still works, and why, as one reconcile observed it (lifecycle.md 2.3).

Pure functions. A silent member of a quorum is not lost for that reason alone: Kubernetes or its volume must confirm it.
Without such a witness the operator cannot see the member's state, and the verdict says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from apis.components import DM_CLUSTER, TIDB_CLUSTER, ComponentType, Outage, component_types

NO_SUCH_CLUSTER, NO_PD, BAD_TLS = "NoSuchCluster", "NoPD", "BadTLS"
"""Reasons that are root causes, whatever else fails because of them."""

REASONS = frozenset({NO_SUCH_CLUSTER, NO_PD, BAD_TLS}).union(
    *(row.outage.reasons for of in (TIDB_CLUSTER, DM_CLUSTER) for row in component_types(of) if row.outage)
)
"""Every reason of a condition Ready that reports an outage."""

_NAMED = 5
"""The maximum number of members that a sentence names."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One component is out of service, or its state is unknown.

    `sentence` says in the user's terms what fails and what still works; `detail` quotes servers or Kubernetes. `failed`
    are the servers that are known to be unable to serve, by pod name if they have one in this cluster.
    """

    component: str
    reason: str
    sentence: str
    detail: str = ""
    failed: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The sentence, then the detail."""
        return f"{self.sentence} {self.detail}".rstrip()


@dataclass(frozen=True, slots=True)
class Server:
    """A member, store or server. `trouble` is what keeps it from serving; empty if nothing is known."""

    name: str
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A component as one reconcile observed it.

    `servers` are its members, stores or servers from the last list. Kubernetes reports `ready` of `wanted` pods Ready.
    `answer` is the error of the last call. `leaderless`: a member reported that there is no leader. `was_lost`: the
    last reconcile found that the quorum is lost.
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
        """The servers with a known trouble."""
        return [server for server in self.servers if server.trouble]

    @property
    def pods(self) -> str:
        """The number of Ready pods, in words."""
        return f"Kubernetes reports {self.ready} of {self.wanted} pods Ready"


def of_silent_quorum(seen: Seen) -> Verdict | None:
    """The verdict on a quorum if no member answers with a leader; None for a component without a quorum."""
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
    """The verdict on a lost quorum. It stays until a leader answers: members that are only starting are no quorum."""
    row, total = seen.row, len(seen.servers)
    page = "docs/lost-quorum.md" if row.of == TIDB_CLUSTER else f"docs/reasons/dm.md#{outage.reason.lower()}"
    if running * 2 <= total:
        verb = "is" if running == 1 else "are"
        what = f"{row.title} has lost its quorum: {running} of {total} members {verb} running"
        detail = f"Lost: {_names(seen.failed)}."
    else:
        what = f"{row.title} has lost its quorum: {running} of {total} members are running again, and none leads yet"
        detail = seen.answer
    failed = tuple(server.name for server in seen.failed)
    return Verdict(row.name, outage.reason, f"{what}. {outage.effect} See {page}.", detail, failed)


def of_stores(seen: Seen, replicas: int) -> Verdict | None:
    """The verdict on stores whose regions have `replicas` replicas; None while every region has its quorum."""
    row, total, down = seen.row, len(seen.servers), seen.failed
    placed = min(replicas, total)
    # half of an even number of replicas is already no quorum
    if row.outage is None or not down or len(down) < (placed + 1) // 2:
        return None
    if len(down) == total:
        return _none_serves(seen)
    what = f"{len(down)} of {total} {row.title} stores are down, so regions with most replicas there have no quorum"
    sentence = f"{what}. Reads and writes of these regions fail; other regions are served."
    return Verdict(row.name, row.outage.reason, sentence, f"Down: {_names(down)}.")


def of_servers(seen: Seen) -> Verdict | None:
    """The verdict on servers that serve independently of each other; None while one of them serves."""
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
    in_order = sorted(servers, key=lambda each: (len(each.name), each.name))
    return ", ".join(f"{server.name} ({server.trouble})" for server in in_order[:_NAMED]) + more
