"""The `Kind` of TidbCluster (lifecycle.md 2)."""

from collections.abc import Sequence

from apis.problem import Problem
from apis.tidbcluster import TidbCluster
from apis.validation import immutability, stricter
from controllers.cluster_kind import cluster_kind
from controllers.tidbcluster import conditions, stages
from kube.objects import Object
from kube.resources import TIDB_CLUSTERS
from member.context import Dependencies, ReconcileContext
from member.memory import ClusterMemory
from member.observed import restores
from member.observed.running_spec import running


def _context(
    owner: Object, tc: TidbCluster, deps: Dependencies, memory: ClusterMemory, removed: frozenset[str]
) -> ReconcileContext:
    there = deps.listers.restores.list() if deps.listers.restores else ()
    tc = restores.marked(tc, there, deps.listers.tidb_clusters, deps.settings.references)
    return ReconcileContext(owner, tc, deps, memory=memory, removed=removed)


def _problems(tc: TidbCluster, deps: Dependencies) -> Sequence[Problem]:
    return immutability(tc, running(tc, deps.listers))


def _facts(tc: TidbCluster) -> object:
    status = tc.status
    urls = [member.client_url for member in status.pd.members.values()]
    known = status.cluster_id, urls, bool(status.tikv.stores), bool(status.tikv.peer_stores)
    return tc.spec, known, stricter.reported(tc)


TIDB_CLUSTER = cluster_kind(
    TIDB_CLUSTERS,
    TidbCluster,
    context=_context,
    run=stages.run,
    conditions=conditions.conditions,
    problems=_problems,
    facts=_facts,
)
