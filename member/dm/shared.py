"""The common parts of masters' and workers' desired objects, and their start scripts (other-resources.md 6.4, 6.5)."""

from collections.abc import Sequence

from apis import config
from apis.accessor import component
from apis.dm_components import DMComponentSpec
from apis.dmcluster import DMCluster
from apis.identity import scheme, tls_enabled
from apis.toml import Table
from dataplane.addresses import DISCOVERY_PORT, DM_MASTER_PEER_PORT, DM_MASTER_PORT, DM_WORKER_PORT
from kube.objects import Json
from member.naming import cluster_secret
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.startscript.fragments import assemble, expressions, fragment, settings

_SOURCES = "/var/lib/source-tls"
"""The mount directory of certificates for sources and downstream servers."""
_START_TIMEOUT = 30


def put_certificates(tables: Table, dc: DMCluster, name: str) -> None:
    """With TLS, set the paths of the component's certificates."""
    if tls_enabled(dc):
        files = volumes.certificate_files(f"{name}-tls")
        for key, path in zip(("ssl-ca", "ssl-cert", "ssl-key"), files, strict=True):
            config.put(tables, key, path)


def stateful_set(dc: DMCluster, name: str, config_map_name: str, *, ports: Sequence[Json], env: Sequence[Json]) -> Json:
    """The StatefulSet of a component."""
    own = component(dc, name)
    spec = own.spec
    assert isinstance(spec, DMComponentSpec)
    secrets = {f"{name}-tls": cluster_secret(dc, name)} if tls_enabled(dc) else {}
    of_sources = dc.spec.tls_client_secret_names
    container = pod.main_container(
        own,
        command=["/bin/sh", f"/usr/local/bin/{_script(name)}"],
        ports=ports,
        mounts=[
            volumes.ANNOTATIONS_MOUNT,
            *volumes.config_mounts(name),
            volumes.mount(name, f"/var/lib/{name}"),
            *volumes.certificate_mounts(secrets),
            *(volumes.mount(secret, f"{_SOURCES}/{secret}", read_only=True) for secret in of_sources),
            *spec.additional_volume_mounts,
        ],
        builtin_env=env,
    )
    template = pod.pod_template(
        own,
        containers=[container],
        volumes=[
            volumes.ANNOTATIONS_VOLUME,
            volumes.config_map_volume("config", config_map_name, "config-file", f"{name}.toml"),
            volumes.config_map_volume("startup-script", config_map_name, "startup-script", _script(name)),
            *volumes.certificate_volumes(secrets),
            *(volumes.secret_volume(secret, secret) for secret in of_sources),
        ],
        metrics_port=own.type.ports["client"],
    )
    claims = [volumes.data_claim(own.type.data_volume, own.storage_request, spec)]
    return stateful_sets.stateful_set(own, template=template, claims=claims)


def _script(name: str) -> str:
    return f"{name.replace('-', '_')}_start_script.sh"


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
