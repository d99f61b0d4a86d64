"""TidbCluster as a kind: what its reconciles are made of (lifecycle.md 2)."""

from collections.abc import Sequence
from dataclasses import replace

from apis.defaulting import with_defaults
from apis.problem import Problem
from apis.tidbcluster import TidbCluster
from apis.validation import immutability, validate
from controllers.cluster_memory import ClusterMemory
from controllers.holding import hold
from controllers.kind import Kind
from controllers.tidbcluster import conditions, stages, status_log
from kube.objects import Json, Object
from kube.resources import TIDB_CLUSTERS
from member.components import workload_names
from member.context import Dependencies, ReconcileContext
from member.lifecycle import own_changes
from member.observed import restores
from member.observed.removed_components import running_without_spec, with_removed
from member.observed.running_spec import running


def _context(owner: Object, tc: TidbCluster, deps: Dependencies, memory: ClusterMemory) -> ReconcileContext:
    removed = running_without_spec(tc, deps.listers.stateful_sets, workload_names())
    return ReconcileContext(
        owner,
        restores.marked(with_removed(tc, removed), deps.listers.restores.list() if deps.listers.restores else ()),
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


def _last_written(owner: Object, deps: Dependencies) -> Json | None:
    names = (f"{owner.metadata.name}-{component}" for component in workload_names())
    found = (deps.listers.stateful_sets.get(owner.metadata.namespace, name) for name in names)
    return own_changes.last_written(owner.metadata.uid, [each for each in found if each is not None])


def _problems(tc: TidbCluster, deps: Dependencies) -> Sequence[Problem]:
    return validate(tc) or immutability(tc, running(tc, deps.listers))


TIDB_CLUSTER = Kind(
    name="tidbcluster",
    resource=TIDB_CLUSTERS,
    model=TidbCluster,
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
