"""Reasons of outages: what is out of service, or cannot be seen from where the operator runs."""

from collections.abc import Mapping

from cli.reasons.reason import LOOK_AT_PODS, NOTHING, Reason

_WATCHES = "It replaces what failover may replace."
_KEEPS = "It removes nothing, and trusts no earlier answer."
_LEADERLESS = (
    "Read the logs of the members. Check NetworkPolicies and DNS between the pods, and whether their "
    "disks are full or slow."
)

OUTAGES: Mapping[str, Reason] = {
    "Observed": Reason(
        "The condition `Observed` of a component is True again: the operator can read its members, which it could "
        "not for a while.",
        "It keeps the status up to date.",
        NOTHING,
    ),
    "PDNoLeader": Reason(
        "A majority of the PD members is running, and they elect no leader. The database cannot serve.",
        _KEEPS,
        _LEADERLESS,
    ),
    "DMMasterNoLeader": Reason(
        "A majority of the masters of DM is running, and they elect no leader. Replication tasks cannot be managed.",
        _KEEPS,
        _LEADERLESS,
    ),
    "RegionsWithoutQuorum": Reason(
        "So many TiKV stores are Disconnected or Down that regions can have lost their majority. Clients cannot read "
        "or write these regions.",
        _WATCHES,
        "Bring back the stores in the message, and delete none of their volumes. If they are gone for good, see PD's "
        "documentation of `unsafe recovery`.",
    ),
    "TiFlashDown": Reason(
        "All TiFlash stores are Disconnected or Down. Queries that need TiFlash fail; TiKV has all data.",
        _WATCHES,
        LOOK_AT_PODS,
    ),
    "NoTiDBServer": Reason(
        "No TiDB server answers on its status port. Clients cannot use the database; its data is not affected. If "
        "Kubernetes reports the pods Ready, perhaps only the operator cannot reach them.",
        _WATCHES,
        "`kubectl logs POD -c tidb` of the servers. If they serve clients, check the NetworkPolicies between the "
        "operator and port 10080.",
    ),
    "NoTiProxyServer": Reason(
        "No TiProxy answers through its API. Clients cannot connect through it; those that connect to TiDB can.",
        _WATCHES,
        LOOK_AT_PODS,
    ),
    "NoTiCDCServer": Reason(
        "No capture of TiCDC answers. Changefeeds stand still; the database is not affected.",
        _WATCHES,
        "`kubectl logs` of its pods. PD keeps the data that changefeeds need for `gc-ttl` (24 hours by default).",
    ),
    "NoTiCIMeta": Reason(
        "No meta server of TiCI is Ready. Full-text indexes are not updated.",
        _WATCHES,
        LOOK_AT_PODS,
    ),
    "NoTiCIWorker": Reason(
        "No worker of TiCI is Ready. Full-text indexes are not updated.",
        _WATCHES,
        LOOK_AT_PODS,
    ),
    "NoPumpNode": Reason(
        "No Pump node is online in PD. TiDB servers that write binlogs cannot commit.",
        _WATCHES,
        LOOK_AT_PODS,
    ),
    "NoTSOServer": Reason(
        "PD lists no member of the microservice tso. Nothing in the cluster gets a timestamp.",
        _WATCHES,
        LOOK_AT_PODS,
    ),
    "NoSchedulingServer": Reason(
        "PD lists no member of the microservice scheduling. PD moves no regions; the database serves.",
        _WATCHES,
        LOOK_AT_PODS,
    ),
    "NoDMWorker": Reason(
        "The masters hear of no worker. Nothing is replicated.",
        _WATCHES,
        LOOK_AT_PODS,
    ),
}
