"""The desired objects of masters and workers, and their start scripts (other-resources.md 6.4, 6.5).

Pure functions of a defaulted DMCluster.
"""

from collections.abc import Sequence

from apis import config, toml
from apis.accessor import component
from apis.dm_components import DMComponentSpec, DMMasterServiceSpec, DMMasterSpec
from apis.dmcluster import DMCluster
from apis.identity import scheme, tls_enabled
from apis.toml import Table
from dataplane.addresses import DISCOVERY_PORT, DM_MASTER_PEER_PORT, DM_MASTER_PORT, DM_WORKER_PORT
from kube.objects import Json
from member.naming import cluster_secret, member_name, peer_service
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import end_user, peer, port
from member.startscript.fragments import assemble, expressions, fragment, settings

_SOURCES = "/var/lib/source-tls"
"""The mount directory of certificates for sources and downstream servers."""
_START_TIMEOUT = 30


def _put_certificates(tables: Table, dc: DMCluster, name: str) -> None:
    """With TLS, set the paths of the component's certificates."""
    if tls_enabled(dc):
        files = volumes.certificate_files(f"{name}-tls")
        for key, path in zip(("ssl-ca", "ssl-cert", "ssl-key"), files, strict=True):
            config.put(tables, key, path)


def _stateful_set(
    dc: DMCluster, name: str, config_map_name: str, *, ports: Sequence[Json], env: Sequence[Json]
) -> Json:
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


MASTER = "dm-master"


def master_services(dc: DMCluster) -> list[Json]:
    """The Services of the masters: one for clients, one for the masters among themselves."""
    chosen = _master_spec(dc).service or DMMasterServiceSpec()
    return [
        end_user(dc, MASTER, _for_clients(chosen), chosen.labels, chosen.annotations),
        peer(dc, MASTER, [port("dm-master-peer", DM_MASTER_PEER_PORT)]),
    ]


def _for_clients(chosen: DMMasterServiceSpec) -> Json:
    node_port = chosen.master_node_port or 0
    return pod.without_unset(
        {
            "type": chosen.type or "ClusterIP",
            "ports": [port(chosen.port_name or MASTER, DM_MASTER_PORT, node_port=node_port)],
            "clusterIP": chosen.cluster_ip,
            "loadBalancerIP": chosen.load_balancer_ip,
            "loadBalancerClass": chosen.load_balancer_class,
            "loadBalancerSourceRanges": chosen.load_balancer_source_ranges,
            "externalTrafficPolicy": chosen.external_traffic_policy,
        }
    )


def master_content(dc: DMCluster) -> Content:
    """The texts of the ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    own = component(dc, MASTER)
    tables = own.config_tables()
    _put_certificates(tables, dc, MASTER)
    spec = _master_spec(dc)
    options = {"scheme": scheme(dc), "dataSubDir": spec.data_sub_dir, "lookup": spec.start_up_script_version}
    return Content({CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: master_script(dc)}, options)


def master_stateful_set(dc: DMCluster, config_map_name: str) -> Json:
    """The StatefulSet, whose pods read the ConfigMap of that name."""
    own_pod = [pod.POD_NAME] if component(dc, MASTER).host_network else []
    return _stateful_set(
        dc,
        MASTER,
        config_map_name,
        ports=[pod.container_port("peer", DM_MASTER_PEER_PORT), pod.container_port("client", DM_MASTER_PORT)],
        env=[
            pod.NAMESPACE,
            pod.env("PEER_SERVICE_NAME", peer_service(dc, MASTER)),
            pod.env("SERVICE_NAME", member_name(dc, MASTER)),
            pod.env("SET_NAME", member_name(dc, MASTER)),
            pod.env("TZ", dc.spec.timezone or "UTC"),
            *own_pod,
        ],
    )


def _master_spec(dc: DMCluster) -> DMMasterSpec:
    assert dc.spec.master is not None
    return dc.spec.master


WORKER = "dm-worker"


def worker_services(dc: DMCluster) -> list[Json]:
    """The headless Service through which the masters reach each worker."""
    return [peer(dc, WORKER, [port(WORKER, DM_WORKER_PORT)], used_by="")]


def worker_content(dc: DMCluster) -> Content:
    """The texts of the ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    tables = component(dc, WORKER).config_tables()
    _put_certificates(tables, dc, WORKER)
    return Content({CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: worker_script(dc)}, {})


def worker_stateful_set(dc: DMCluster, config_map_name: str) -> Json:
    """The desired StatefulSet, whose pods mount the ConfigMap `config_map_name`."""
    own_pod = [pod.POD_NAME] if component(dc, WORKER).host_network else []
    return _stateful_set(
        dc,
        WORKER,
        config_map_name,
        ports=[pod.container_port("client", DM_WORKER_PORT)],
        env=[
            pod.NAMESPACE,
            pod.env("CLUSTER_NAME", dc.metadata.name),
            pod.env("HEADLESS_SERVICE_NAME", peer_service(dc, WORKER)),
            pod.env("SET_NAME", member_name(dc, WORKER)),
            pod.env("TZ", dc.spec.timezone or "UTC"),
            *own_pod,
        ],
    )
