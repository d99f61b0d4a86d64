"""The table of all causes in order, and the findings from it. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from apis.components import DM_CLUSTER
from cli.doctor.causes import (
    admission,
    availability,
    backups,
    certificates,
    cluster,
    containers,
    creation,
    database,
    definitions,
    deletion,
    images,
    mounts,
    nodes,
    operator,
    scheduling,
    volumes,
)
from cli.doctor.facts import Facts
from cli.doctor.finding import Cause, Finding, Severity, Sign

OF_ANY_CLUSTER = (*definitions.CAUSES, *operator.OF_ANY_CLUSTER, *admission.CAUSES)

_TOPICS_OF_CLUSTER: Mapping[str, tuple[Cause, ...]] = {
    "Availability": availability.CAUSES,
    "Management": operator.CAUSES,
    "Cluster": cluster.CAUSES,
    "Database": database.CAUSES,
    "Creation of pods": creation.CAUSES,
    "Scheduling": scheduling.CAUSES,
    "Volumes": volumes.CAUSES,
    "Images": images.CAUSES,
    "Mounts": mounts.CAUSES,
    "Certificates": certificates.CAUSES,
    "Containers": containers.CAUSES,
    "Nodes": nodes.CAUSES,
    "Deletion": deletion.CAUSES,
    "Backups": backups.CAUSES,
}
"""A new cause is one more entry in its module's tuple."""

TOPICS: Mapping[str, tuple[Cause, ...]] = {"Operator": OF_ANY_CLUSTER, **_TOPICS_OF_CLUSTER}

OF_CLUSTER = tuple(cause for causes in _TOPICS_OF_CLUSTER.values() for cause in causes)

_OF_DM_CLUSTER = tuple(cause for cause in OF_CLUSTER if cause not in backups.CAUSES)
"""The causes for a DMCluster, which has no Backups."""

CAUSES = (*OF_ANY_CLUSTER, *OF_CLUSTER)


def diagnose(facts: Facts, causes: Iterable[Cause] | None = None) -> list[Finding]:
    """The findings: problems first, each in the order of the table."""
    table = causes if causes is not None else CAUSES if facts.cluster else OF_ANY_CLUSTER
    if facts.kind == DM_CLUSTER:
        table = [cause for cause in table if cause not in OF_CLUSTER or cause in _OF_DM_CLUSTER]
    findings = [finding for cause in table for finding in _found(cause, facts)]
    return sorted(findings, key=lambda each: each.severity is Severity.WARNING)


def _found(cause: Cause, facts: Facts) -> Iterator[Finding]:
    """One finding for all equal signs."""
    alike: dict[Sign, list[str]] = {}
    for sign in cause.signs(facts):
        objects = alike.setdefault(Sign("", sign.message, sign.field, sign.value, sign.way_out), [])
        objects += [sign.object] * (sign.object not in objects)
    for shared, objects in alike.items():
        way_out = shared.way_out or cause.way_out
        yield Finding(cause.severity, cause.reason, tuple(objects), shared.message, shared.field, shared.value, way_out)
