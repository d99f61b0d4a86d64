"""One cluster: its report, its pods by zone and node, and the times to which it can be restored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from apis import tso
from cli.doctor.diagnosis import diagnose
from cli.doctor.reading import read
from cli.doctor.rendering import Diagnosis
from cli.tidb.archives import archives_of, is_of, span
from cli.tidb.clusters import find_cluster
from cli.tidb.status.facts import Facts, attempt, read_facts
from cli.tidb.status.report import Pod, Report, Summary
from cli.tidb.status.reporting import report_of, summary
from kube.client import Client
from kube.resources import NODES
from meta.locations import ZONE, location


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
class ClusterView:
    """A cluster."""

    report: Report
    zones: Sequence[Zone]
    ranges: Sequence[Range]


def read_cluster_view(client: Client, namespace: str, name: str) -> ClusterView:
    """The cluster of a name such as `tc/basic`.

    Raises Failure if it does not exist or cannot be decoded, ApiError, TransportError.
    """
    facts = read_facts(client, find_cluster(client, namespace, name))
    nodes = attempt(facts.unread, "nodes", lambda: client.list_page(NODES, metadata_only=True).items) or []
    zones = {each.metadata.name: location(each.metadata.labels, [ZONE]).get(ZONE, "") for each in nodes}
    report = report_of(facts)
    return ClusterView(report, list(_by_zone(report.pods, zones)), list(ranges_of(facts)))


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
