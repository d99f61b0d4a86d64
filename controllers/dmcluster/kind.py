"""The `Kind` of DMCluster (other-resources.md 6)."""

from collections.abc import Sequence

from apis.components import DM_CLUSTER as DM_CLUSTER_KIND
from apis.dmcluster import DMCluster
from apis.problem import Problem
from apis.validation import changes, stricter
from controllers.cluster_kind import cluster_kind
from controllers.dmcluster import conditions, stages
from kube.objects import Json, Object
from kube.resources import DM_CLUSTERS
from member.components import workload_names
from member.context import Dependencies, DMContext
from member.dm.desired import MASTER
from member.memory import ClusterMemory
from member.objects.config_map import CONFIG_FILE
from member.observed.pods import controls
from member.observed.running_spec import remaining_config
from member.observed.status import SUSPEND


def _context(
    owner: Object, dc: DMCluster, deps: Dependencies, memory: ClusterMemory, removed: frozenset[str]
) -> DMContext:
    return DMContext(owner, dc, deps, memory=memory, removed=removed)


def _problems(dc: DMCluster, deps: Dependencies) -> Sequence[Problem]:
    running = _running(dc, deps)
    left_behind = _configs_of_suspended_masters(dc, deps)
    return [*stricter.check(dc, running), *changes.dm_immutability(dc, running, left_behind)]


def _running(dc: DMCluster, deps: Dependencies) -> dict[str, Json]:
    """The StatefulSets of the cluster's components."""
    names = {each: f"{dc.metadata.name}-{each}" for each in workload_names(DM_CLUSTER_KIND)}
    found = {each: deps.listers.stateful_sets.get(dc.metadata.namespace, name) for each, name in names.items()}
    return {each: live.decode() for each, live in found.items() if live and controls(dc.metadata.uid, live)}


def _configs_of_suspended_masters(dc: DMCluster, deps: Dependencies) -> list[str]:
    """The configurations that the ConfigMaps of suspended masters keep; empty if masters are not suspended."""
    if dc.status.master.phase != SUSPEND:
        return []
    return [data.get(CONFIG_FILE, "") for data in remaining_config(dc, MASTER, deps.listers)]


def _facts(dc: DMCluster) -> object:
    master = dc.status.master
    known = master.phase, [member.client_url for member in master.members.values()]
    return dc.spec, known, stricter.reported(dc)


DM_CLUSTER = cluster_kind(
    DM_CLUSTERS,
    DMCluster,
    context=_context,
    run=stages.run,
    conditions=conditions.conditions,
    problems=_problems,
    facts=_facts,
)
