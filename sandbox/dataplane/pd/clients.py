"""How TiKV and TiDB find PD."""

from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.process import PdProcess
from sandbox.dataplane.processes import Launch


def find_pd(launch: Launch, deps: Dependencies) -> PdCluster | None:
    """The PD cluster a pod of the same TidbCluster talks to, if it has a leader (objects.md 7.3, base address)."""
    name = launch.env.get("CLUSTER_NAME", "")
    found = deps.network.find(f"{name}-pd:2379", Origin(launch.namespace, launch.pod))
    process = found.process if found is not None else None
    cluster = process.cluster if isinstance(process, PdProcess) else None
    return cluster if cluster is not None and cluster.leader is not None else None
