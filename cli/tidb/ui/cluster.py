"""One cluster: its report, its pods by zone and node, and the times to which it can be restored."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from apis import tso
from apis.times import parse_time
from cli.doctor.diagnosis import diagnose
from cli.doctor.reading import read
from cli.doctor.rendering import Diagnosis
from cli.tidb.archives import archives_of, is_of, span
from cli.tidb.clusters import find_cluster
from cli.tidb.status.facts import Facts, attempt, read_facts
from cli.tidb.status.report import Pod, Report, Summary
from cli.tidb.status.reporting import report_of, summary
from cli.tidb.ui.underway import Change, change_of
from controllers.job_owners import status
from kube.client import Client
from kube.objects import Json
from kube.resources import EVENTS, NODES
from meta.locations import ZONE, location

_OF_SETS = "involvedObject.kind=StatefulSet"
_WEEKS = 5
"""The weeks in the calendar of backups."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node with pods of the cluster. `name` is empty for pods that are on no node."""

    name: str
    pods: Sequence[Pod]


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone with pods of the cluster. `name` is empty if the zone is unknown."""

    name: str
    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Range:
    """The times to which the log of a Backup can restore the cluster, with the snapshots below it."""

    log: str
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Day:
    """A day in UTC: the snapshots and exports that ended on it. `restorable`: a log reaches a time of it."""

    date: date
    complete: int
    failed: int
    restorable: bool


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster. `ended` has the phases of the snapshots and exports that ended on a day; `change` is under way."""

    report: Report
    zones: Sequence[Zone]
    ranges: Sequence[Range]
    ended: Mapping[date, Sequence[str]]
    change: Change | None = None


def read_cluster_view(client: Client, namespace: str, name: str) -> ClusterView:
    """The cluster of a name such as `tc/basic`.

    Raises Failure if it does not exist or cannot be decoded, ApiError, TransportError.
    """
    facts = read_facts(client, find_cluster(client, namespace, name))
    nodes = attempt(facts.unread, "nodes", lambda: client.list_page(NODES, metadata_only=True).items) or []
    zones = {node.metadata.name: location(node.metadata.labels, [ZONE]).get(ZONE, "") for node in nodes}
    # a user who may not list events reads so among `unread` already
    events = attempt([], "events", lambda: client.list_page(EVENTS, namespace, field_selector=_OF_SETS).items) or []
    return view_of(facts, zones, [each.decode() for each in events])


def view_of(facts: Facts, zones: Mapping[str, str], events: Sequence[Json] = ()) -> ClusterView:
    """The view of a cluster that has been read; `zones` are the zones of nodes by name, `events` of StatefulSets."""
    report, change = report_of(facts), change_of(facts, events)
    return ClusterView(report, list(_by_zone(report.pods, zones)), list(ranges_of(facts)), _ended(facts), change)


@dataclass(frozen=True, slots=True)
class DoctorView:
    """A cluster, and what `doctor` says about it."""

    cluster: Summary
    diagnosis: Diagnosis


def read_doctor_view(client: Client, namespace: str, name: str, now: datetime) -> DoctorView:
    """As `read_cluster_view`."""
    found = find_cluster(client, namespace, name)
    (facts,) = read(client, namespace, [name], now)
    return DoctorView(summary(found), Diagnosis(facts, diagnose(facts)))


def _by_zone(pods: Iterable[Pod], zones: Mapping[str, str]) -> Iterator[Zone]:
    """The pods by zone and node; those on no node, or in no known zone, come last."""

    def place(pod: Pod) -> tuple[bool, bool, str, str]:
        zone = zones.get(pod.node, "")
        return not pod.node, not zone, zone, pod.node

    for (*_, zone), of_zone in groupby(sorted(pods, key=place), lambda pod: place(pod)[:3]):
        yield Zone(zone, [Node(node, list(there)) for node, there in groupby(of_zone, lambda pod: pod.node)])


def ranges_of(facts: Facts) -> Iterator[Range]:
    """The times to which the logs of the cluster can restore it; none for a log without a snapshot."""
    meta, archives = facts.found.object.metadata, archives_of(facts.backups)
    for log in archives.logs():
        if is_of(log, meta.namespace, meta.name) and (found := span(archives, log)):
            yield Range(log.metadata.name, *map(tso.time_of, found))


def _ended(facts: Facts) -> Mapping[date, Sequence[str]]:
    meta = facts.found.object.metadata
    ended: dict[date, list[str]] = defaultdict(list)
    for backup in archives_of(facts.backups).backups.values():
        time = parse_time(backup.status.time_completed or backup.status.time_started or "")
        if time and backup.spec.backup_mode != "log" and is_of(backup, meta.namespace, meta.name):
            ended[time.astimezone(UTC).date()].append(backup.status.phase)
    return ended


def calendar_of(view: ClusterView, today: date) -> Sequence[Sequence[Day]]:
    """The last weeks from Monday to Sunday, the current one last; empty if no backup concerns them."""
    monday = today - timedelta(days=today.weekday() + 7 * (_WEEKS - 1))
    days = [_day(view, monday + timedelta(days=number)) for number in range(7 * _WEEKS)]
    if not any(day.complete or day.failed or day.restorable for day in days):
        return []
    return [days[start : start + 7] for start in range(0, len(days), 7)]


def _day(view: ClusterView, day: date) -> Day:
    phases = view.ended.get(day, ())
    restorable = any(each.first.date() <= day <= each.last.date() for each in view.ranges)
    return Day(day, phases.count(status.COMPLETE), phases.count(status.FAILED), restorable)
