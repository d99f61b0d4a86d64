"""The cache of one resource lags while all others are current, at any moment (FP2, FP3; lifecycle.md F1, F6).

Each resource has its own watch, which may be silent for minutes, or served by an API server that is behind.
`lag/stale.pods+45@6/tikv-upgrade`: in the workload `tikv-upgrade` the cache of pods shows nothing new for 45 seconds,
from the 6th second, then every missed change; with `hidden` in place of `stale` it lists again.
"""

import re
from collections.abc import Iterator
from itertools import product

from msgspec.structs import replace

from kube.resources import (
    BACKUP_SCHEDULES,
    BACKUPS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    COMPACT_BACKUPS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    INGRESSES,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESTORES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from ports.randomness import Randomness, SeededRandomness
from simulate.engine.plan import Hidden, InvalidPlan, Plan, Stale
from simulate.families import loss_and_edit, losses_undone, schedules
from simulate.families.draws import pick
from simulate.families.family import Family
from simulate.families.plans_of_others import PlansOfOthers
from simulate.families.workloads import WORKLOADS

CACHED = {
    each.plural: each
    for each in (
        *(TIDB_CLUSTERS, STATEFUL_SETS, PODS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, NODES, STORAGE_CLASSES),
        *(SERVICES, CONFIG_MAPS, SECRETS, DEPLOYMENTS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, INGRESSES),
        *(CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, JOBS, BACKUPS, RESTORES, BACKUP_SCHEDULES, COMPACT_BACKUPS),
        *(DM_CLUSTERS, TIDB_MONITORS, TIDB_INITIALIZERS, TIDB_DASHBOARDS, TIDB_NG_MONITORINGS),
    )
}
"""The operator's caches, by their names in plans."""

_OTHERS = PlansOfOthers(loss_and_edit.FAMILY, losses_undone.FAMILY, schedules.FAMILY)
_HOW = {"stale": Stale, "hidden": Hidden}
_NAME = re.compile(r"(stale|hidden)\.([a-z]+)\+(\d+)@(\d+(?:\.\d+)?)")

_SHORTEST, _LONGEST, _LONGEST_OF_SCHEDULES = 5, 120, 45
"""Seconds; an object of a schedule counts as late after a minute."""
_FROM = (0.5, 1.1, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 50.0, 91.0)
"""Seconds after which the lag begins: most plans begin after one second, and their subject takes longer."""
_MORE = 300.0
"""Additional seconds of a plan for the delayed work."""
_MOST_TELLING = (TIDB_CLUSTERS, STATEFUL_SETS, PODS, PERSISTENT_VOLUME_CLAIMS, NODES)
_ANOTHER_END = {("backup-deleted", BACKUPS)}
"""A Backup to the place of one that is deleted with its files has failed if it is seen before that one is gone."""
_OF_LOSSES = 1200
"""The number of random plans with losses."""


def _plan(rest: str) -> Plan:
    """The plan called `lag/<rest>`. Raises InvalidPlan."""
    lag, _, of = rest.partition("/")
    match = _NAME.fullmatch(lag)
    if match is None or match[2] not in CACHED:
        raise InvalidPlan(
            f"{rest!r} is no `stale.RESOURCE+SECONDS@SECOND/PLAN`, nor one with `hidden`, of {', '.join(CACHED)}"
        )
    how, resource, seconds, at = match.groups()
    return _lagging(_OTHERS.named(of), how, CACHED[resource], int(seconds), float(at))


def _lagging(plan: Plan, how: str, resource: Resource, seconds: int, at: float) -> Plan:
    lag = _HOW[how](at=at, caches=(str(resource),), seconds=float(seconds))
    return replace(
        plan,
        name=f"{FAMILY.name}/{how}.{resource.plural}+{seconds}@{at:g}/{plan.name}",
        faults=(*plan.faults, lag),
        budget=plan.budget + _MORE,
    )


def _plans() -> Iterator[Plan]:
    """Each resource in each workload and schedule, and some in some losses, at random moments for random times."""
    draw = SeededRandomness(FAMILY.name)
    for plan, resource in product(WORKLOADS.values(), CACHED.values()):
        if (plan.name, resource) not in _ANOTHER_END:
            yield _drawn(draw, plan, resource)
    for plan, resource in product(schedules.FAMILY.plans(), CACHED.values()):
        yield _drawn(draw, plan, resource, _LONGEST_OF_SCHEDULES)
    losses = [*loss_and_edit.FAMILY.plans(), *losses_undone.FAMILY.plans()]
    for _ in range(_OF_LOSSES):
        yield _drawn(draw, pick(draw, losses), pick(draw, _MOST_TELLING))


def _drawn(draw: Randomness, plan: Plan, resource: Resource, longest: int = _LONGEST) -> Plan:
    how, seconds = pick(draw, list(_HOW)), draw.integer(_SHORTEST, longest)
    return _lagging(plan, how, resource, seconds, pick(draw, _FROM))


FAMILY = Family("lag", _plan, _plans)
