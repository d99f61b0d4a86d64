"""The parts of `Kind` that all kinds of clusters share: contexts, memory, and the handling of invalid specs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from msgspec import structs

from apis.accessor import workloads
from apis.cluster import Cluster
from apis.defaulting import with_defaults
from apis.ordinals import gated
from apis.problem import Problem
from apis.validation import validate
from controllers import status_log
from controllers.conditions import ConditionValue
from controllers.database_actions import executor_of
from controllers.holding import hold
from controllers.kind import Kind
from controllers.stages import Steps
from controllers.status_fields import STATUS_FIELDS
from kube.objects import Json, Object
from kube.reading import Readings
from kube.resources import Resource
from member.components import workload_names
from member.context import ClusterContext, Dependencies
from member.lifecycle import own_changes
from member.memory import ClusterMemory
from member.naming import member_name
from member.observed.running_spec import running_without_spec, with_removed
from member.observed.status import image_of
from ports.effects import NotedClock

M = TypeVar("M", bound=Cluster)
C = TypeVar("C", bound=ClusterContext)

NewContext = Callable[[Object, M, Dependencies, ClusterMemory, frozenset[str]], C]
"""Makes a context from the cached object, its model, dependencies, memory, and the components removed from the spec."""


def cluster_kind(
    resource: Resource,
    model: type[M],
    *,
    context: NewContext[M, C],
    run: Callable[[C], Steps[C]],
    conditions: Callable[[C, datetime], Mapping[str, ConditionValue]],
    problems: Callable[[M, Dependencies], Sequence[Problem]],
    facts: Callable[[M], object],
) -> Kind[M, C, Dependencies, ClusterMemory]:
    """The `Kind` of a cluster resource; for `run`, `conditions`, `problems` and `facts` see there."""
    names = workload_names(resource.kind)

    def new_context(owner: Object, tc: M, deps: Dependencies, memory: ClusterMemory) -> C:
        removed = running_without_spec(tc, deps.listers.stateful_sets, names)
        readings = Readings()
        once = replace(_noted(deps, readings), dataplane=deps.dataplane.for_one_reconcile())
        counted = gated(with_removed(tc, removed), deps.settings.advanced_stateful_sets)
        whole = _with_images_that_run(counted, deps)
        ctx = context(owner, whole, once, memory, frozenset(removed))
        ctx.readings = readings
        return ctx

    def last_written(owner: Object, deps: Dependencies) -> Json | None:
        named = (f"{owner.metadata.name}-{component}" for component in names)
        found = (deps.listers.stateful_sets.get(owner.metadata.namespace, name) for name in named)
        return own_changes.last_written(owner.metadata.uid, [obj for obj in found if obj is not None])

    return Kind(
        name=resource.kind.lower(),
        resource=resource,
        model=model,
        memory=ClusterMemory,
        context=new_context,
        run=run,
        status=lambda ctx: ctx.tc.status,
        conditions=conditions,
        defaults=with_defaults,
        mistakes=validate,
        problems=problems,
        noted=_noted,
        facts=facts,
        rechecks=lambda deps: deps.settings.rechecks,
        slow=lambda ctx: ctx.deps.dataplane.slow,
        update_times=True,
        log_news=status_log.log_news,
        hold=hold,
        last_written=last_written,
        status_fields=STATUS_FIELDS,
        executor=executor_of,
    )


def _with_images_that_run(tc: M, deps: Dependencies) -> M:
    """The cluster without `image` in each component whose pods v1.6 started from the untagged `baseImage`.

    The version of such an image is unknown. The tag of `image` may be older, and data do not survive a downgrade.
    """
    for component in (workload for workload in workloads(tc) if workload.runs_image_field):
        base_image = component.workload.base_image
        live = deps.listers.stateful_sets.get(tc.metadata.namespace, member_name(tc, component.name))
        if live and base_image and image_of(live.decode(), component.name) == base_image:
            tc = structs.replace(
                tc, spec=component.type.replaced(tc.spec, structs.replace(component.workload, image=""))
            )
    return tc


def _noted(deps: Dependencies, readings: Readings) -> Dependencies:
    return replace(deps, listers=deps.listers.through(readings), clock=NotedClock(deps.clock))
