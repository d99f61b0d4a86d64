"""The search of TiKV and TiDB for PD."""

from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.process import PdProcess
from sandbox.dataplane.processes import Launch


def find_pd(endpoints: str, launch: Launch, deps: Dependencies, *, timestamps: bool = True) -> PdCluster | None:
    """The PD cluster behind addresses or URLs, if it has a leader and a pod can reach a member (objects.md 7.3).

    Clients need the leader, and one that has not loaded the stores yet cannot answer. Most clients also need
    `timestamps`.
    """
    origin = Origin.of(launch)
    every = (deps.network.find(each, origin) for each in endpoints.split(",") if each)
    found = next((running for running in every if running is not None), None)
    process = found.process if found is not None else None
    cluster = process.cluster if isinstance(process, PdProcess) else None
    leader = cluster.leader if cluster is not None else None
    if cluster is None or leader is None or leader.voter is None or not leader.voter.answers(origin):
        return None
    if timestamps and not cluster.gives_timestamps_with(leader):
        return None
    return None if cluster.stores.is_loading(deps.clock.now()) else cluster
