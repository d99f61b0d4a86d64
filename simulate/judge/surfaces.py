"""The surfaces that show a cluster to users, programs and alerts at one instant, read in this process."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from apis.components import component_names, status_section
from cli.doctor.diagnosis import OF_CLUSTER, diagnose
from cli.doctor.finding import Finding
from cli.doctor.reading import read
from cli.tidb.clusters import Found, find_cluster
from cli.tidb.output import Page, rendered
from cli.tidb.status.facts import read_facts
from cli.tidb.status.page import page_of, page_of_all
from cli.tidb.status.report import Report
from cli.tidb.status.reporting import report_of, summary
from kube.objects import Json, condition_of
from kube.resources import DM_CLUSTERS, EVENTS, TIDB_CLUSTERS, Resource
from meta.certificates import CERTIFICATES_VALID
from simulate.engine.engine import Engine

_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_WIDE = 250
"""Columns of a page on which nothing is broken."""
_PREFIXES = {TIDB_CLUSTERS: "tidb_operator_cluster_", DM_CLUSTERS: "tidb_operator_dm_cluster_"}

Series = Mapping[str, Mapping[tuple[str, ...], float]]
"""The values of each metric (name without prefix) by component, and by reason if it has one."""


@dataclass(frozen=True, slots=True)
class Surfaces:
    """One reading of all surfaces: `report`, `page` and `line` are from `kubectl tidb status`.

    `ready` and `certificates` are the conditions Ready and CertificatesValid.
    """

    ready: Json
    certificates: Json
    parts: Mapping[str, Json]
    columns: Mapping[str, str]
    report: Report
    page: str
    coloured_page: str
    line: str
    events: Sequence[Json]
    findings: Sequence[Finding]
    metrics: Series

    @property
    def reasons(self) -> set[str]:
        """The reasons for which the cluster or a component reports that it is not Ready."""
        parts = (condition_of(part.get("conditions") or (), "Ready") for part in self.parts.values())
        return {str(each.get("reason")) for each in (self.ready, *parts) if each.get("status") == "False"}


def look(engine: Engine, namespace: str, cluster: str) -> Surfaces:
    """Read the surfaces of a cluster with its `kubectl tidb` name, e.g. `tc/basic`."""
    found = find_cluster(engine.admin, namespace, cluster)
    report, now = report_of(read_facts(engine.admin, found)), engine.clock.wall()
    status = found.object.decode().get("status") or {}
    return Surfaces(
        ready=condition_of(status.get("conditions") or (), "Ready"),
        certificates=condition_of(status.get("conditions") or (), CERTIFICATES_VALID),
        parts=dict(parts_of(found.resource, status)),
        columns=_columns(engine, found),
        report=report,
        page=_in_one_line(page_of(report, now)),
        coloured_page=rendered(page_of(report, now), _WIDE, colours=True),
        line=_in_one_line(page_of_all([summary(found)], now, with_namespace=False)),
        events=_events(engine, found),
        findings=_findings(engine, found),
        metrics=_metrics(engine, found),
    )


def _in_one_line(page: Page) -> str:
    """A page without line breaks in sentences."""
    return " ".join(rendered(page, _WIDE).split())


def parts_of(resource: Resource, status: Json) -> Iterator[tuple[str, Json]]:
    """The statuses of the components in the status of a cluster of this kind."""
    for name in component_names(of=resource.kind):
        if part := status_section(status, name.removeprefix("dm-") if resource == DM_CLUSTERS else name):
            yield name, part


def _columns(engine: Engine, found: Found) -> Mapping[str, str]:
    """The columns of `kubectl get -o wide`; of equal names, the cluster's own comes first."""
    meta = found.object.metadata
    answer = engine.admin.request("GET", found.resource.path(meta.namespace, meta.name), accept=_TABLE)
    table = msgspec.json.decode(answer.body)
    names = [each["name"] for each in table["columnDefinitions"]]
    cells = zip(names, map(str, table["rows"][0]["cells"]), strict=True)
    return dict(reversed(list(cells)))


def _events(engine: Engine, found: Found) -> Sequence[Json]:
    meta = found.object.metadata
    about = f"involvedObject.kind={found.resource.kind},involvedObject.name={meta.name}"
    return [item.decode() for item in engine.admin.list_page(EVENTS, meta.namespace, field_selector=about).items]


def _findings(engine: Engine, found: Found) -> Sequence[Finding]:
    """Doctor's findings about the cluster; the operator's process holds no Lease here."""
    meta = found.object.metadata
    name = f"{'dc' if found.resource == DM_CLUSTERS else 'tc'}/{meta.name}"
    (facts,) = read(engine.admin, meta.namespace, [name], engine.clock.wall())
    return diagnose(facts, OF_CLUSTER)


def _metrics(engine: Engine, found: Found) -> Series:
    meta, series = found.object.metadata, dict[str, dict[tuple[str, ...], float]]()
    prefix = _PREFIXES[found.resource]
    own = {"namespace": meta.namespace, "name": meta.name}
    for family in engine.operators["operator"].registry.collect():
        for sample in family.samples:
            if own.items() <= sample.labels.items() and sample.name.startswith(prefix):
                labels = tuple(sample.labels[each] for each in ("component", "reason") if each in sample.labels)
                series.setdefault(sample.name.removeprefix(prefix), {})[labels] = sample.value
    return series
