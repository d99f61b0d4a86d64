"""DMCluster as a kind: what its reconciles are made of (other-resources.md 6)."""

from collections.abc import Sequence
from dataclasses import replace

from apis.components import DM_CLUSTER as DM_CLUSTER_KIND
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.problem import Problem
from apis.validation import stricter, validate
from controllers.cluster_memory import ClusterMemory
from controllers.dmcluster import conditions, stages
from controllers.holding import hold
from controllers.kind import Kind
from controllers.tidbcluster import status_log
from kube.objects import Json, Object
from kube.resources import DM_CLUSTERS
from member.components import workload_names
from member.context import Dependencies, DMContext
from member.lifecycle import own_changes
from member.observed.belonging import controls
from member.observed.removed_components import running_without_spec, with_removed


def _context(owner: Object, dc: DMCluster, deps: Dependencies, memory: ClusterMemory) -> DMContext:
    removed = running_without_spec(dc, deps.listers.stateful_sets, workload_names(DM_CLUSTER_KIND))
    return DMContext(
        owner,
        with_removed(dc, removed),
        replace(deps, dataplane=deps.dataplane.for_one_reconcile()),
        failure_timers=memory.failure_timers,
        accepted_settings=memory.accepted_settings,
        stopwatches=memory.stopwatches,
        rolls=memory.rolls,
        complaints=memory.complaints,
        taken_names=memory.taken_names,
        settled=memory.settled,
        removed=frozenset(removed),
    )


def _stateful_sets(name: str, namespace: str, deps: Dependencies) -> dict[str, Object]:
    found = {
        each: deps.listers.stateful_sets.get(namespace, f"{name}-{each}") for each in workload_names(DM_CLUSTER_KIND)
    }
    return {component: live for component, live in found.items() if live is not None}


def _last_written(owner: Object, deps: Dependencies) -> Json | None:
    found = _stateful_sets(owner.metadata.name, owner.metadata.namespace, deps)
    return own_changes.last_written(owner.metadata.uid, found.values())


def _problems(dc: DMCluster, deps: Dependencies) -> Sequence[Problem]:
    running = _stateful_sets(dc.metadata.name, dc.metadata.namespace, deps)
    own = {name: live.decode() for name, live in running.items() if controls(dc.metadata.uid, live)}
    return validate(dc) or list(stricter.check(dc, own))


DM_CLUSTER = Kind(
    name="dmcluster",
    resource=DM_CLUSTERS,
    model=DMCluster,
    memory=ClusterMemory,
    context=_context,
    run=stages.run,
    status=lambda ctx: ctx.status,
    conditions=conditions.conditions,
    defaults=with_defaults,
    problems=_problems,
    slow=lambda ctx: ctx.deps.dataplane.slow,
    update_times=True,
    tell=status_log.tell,
    hold=hold,
    last_written=_last_written,
)
