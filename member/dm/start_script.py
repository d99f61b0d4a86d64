"""The start scripts of masters and workers (other-resources.md 6.5)."""

from apis.dmcluster import DMCluster
from apis.identity import scheme
from dataplane.addresses import DISCOVERY_PORT, DM_MASTER_PEER_PORT, DM_MASTER_PORT, DM_WORKER_PORT
from member.startscript.fragments import assemble, expressions, fragment, settings

_START_TIMEOUT = 30


def master_script(dc: DMCluster) -> str:
    """The text of `dm_master_start_script.sh`; `spec.master` is set."""
    spec = dc.spec.master
    assert spec is not None
    data_dir = f"/var/lib/dm-master/{spec.data_sub_dir}" if spec.data_sub_dir else "/var/lib/dm-master"
    digs = spec.start_up_script_version == "v1"
    return assemble(
        "#!/bin/sh",
        "Starts DM-master in its pod. Made by tidb-operator from the DMCluster.",
        fragment("prologue"),
        expressions(CLUSTER="${PEER_SERVICE_NAME%-dm-master-peer}", DOMAIN="$POD.$PEER_SERVICE_NAME"),
        settings(
            SCHEME=scheme(dc),
            DATA_DIR=data_dir,
            PEER_PORT=DM_MASTER_PEER_PORT,
            CLIENT_PORT=DM_MASTER_PORT,
            START_TIMEOUT=_START_TIMEOUT,
        ),
        f"{fragment('dig')}\n{fragment('any_address')}" if digs else fragment("nslookup"),
        fragment("wait_for_dns"),
        expressions(DISCOVERY=f"$CLUSTER-dm-discovery.$NAMESPACE:{DISCOVERY_PORT}"),
        fragment("ask_over_http"),
        fragment("encoded"),
        fragment("random"),
        fragment("master_join", __package__),
        fragment("master_start", __package__),
    )


def worker_script(dc: DMCluster) -> str:  # noqa: ARG001  # as all scripts, one of its cluster
    """The text of `dm_worker_start_script.sh`."""
    return assemble(
        "#!/bin/sh",
        "Starts DM-worker in its pod. Made by tidb-operator from the DMCluster.",
        fragment("prologue"),
        expressions(DOMAIN="$POD.$HEADLESS_SERVICE_NAME", MASTERS=f"$CLUSTER_NAME-dm-master:{DM_MASTER_PORT}"),
        settings(PORT=DM_WORKER_PORT, START_TIMEOUT=_START_TIMEOUT),
        fragment("nslookup"),
        fragment("wait_for_dns"),
        fragment("worker_start", __package__),
    )
