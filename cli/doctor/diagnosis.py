"""The table of all causes in order, and the findings from it. Pure."""

from collections.abc import Iterable, Iterator

from apis.components import DM_CLUSTER
from cli.doctor.causes import (
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

OF_ANY_CLUSTER = (*definitions.CAUSES, *operator.OF_ANY_CLUSTER)

OF_CLUSTER: tuple[Cause, ...] = (
    *availability.CAUSES,
    *operator.CAUSES,
    *cluster.CAUSES,
    *database.CAUSES,
    *creation.CAUSES,
    *scheduling.CAUSES,
    *volumes.CAUSES,
    *images.CAUSES,
    *mounts.CAUSES,
    *certificates.CAUSES,
    *containers.CAUSES,
    *nodes.CAUSES,
    *deletion.CAUSES,
    *backups.CAUSES,
)
"""A new cause is one more entry in its module's tuple."""

_OF_DM_CLUSTER = tuple(cause for cause in OF_CLUSTER if cause not in backups.CAUSES)
"""The causes for a DMCluster, which has no Backups."""

CAUSES = (*OF_ANY_CLUSTER, *OF_CLUSTER)


def diagnose(facts: Facts, causes: Iterable[Cause] | None = None) -> list[Finding]:
    """The findings: problems first, each in the order of the table."""
    table = causes if causes is not None else CAUSES if facts.cluster else OF_ANY_CLUSTER
    if facts.kind == DM_CLUSTER:
        table = [cause for cause in table if cause not in OF_CLUSTER or cause in _OF_DM_CLUSTER]
    found = [finding for cause in table for finding in _found(cause, facts)]
    return sorted(found, key=lambda each: each.severity is Severity.WARNING)


def _found(cause: Cause, facts: Facts) -> Iterator[Finding]:
    """One finding for all equal signs."""
    alike: dict[Sign, list[str]] = {}
    for sign in cause.signs(facts):
        objects = alike.setdefault(Sign("", sign.message, sign.field, sign.value, sign.way_out), [])
        objects += [sign.object] * (sign.object not in objects)
    for said, objects in alike.items():
        way_out = said.way_out or cause.way_out
        yield Finding(cause.severity, cause.reason, tuple(objects), said.message, said.field, said.value, way_out)
