"""TiProxy's desired objects (objects.md 4.9, 6.4, 9.3): pure functions of a defaulted TidbCluster."""

from apis import config, toml
from apis.accessor import component
from apis.component_specs import TiProxySpec
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT
from dataplane.tiproxy import API_PORT, PEER_PORT, SQL_PORT
from kube.objects import Json
from member.naming import member_name, peer_service, referenced_cluster
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import end_user, peer, port
from member.startscript import options
from member.startscript.fragments import assemble, fragment
from member.tiproxy.certificates import certificates, configure

_DIRECTORY = "/etc/proxy"
_METRICS = "/api/metrics"


def services(tc: TidbCluster) -> list[Json]:
    """TiProxy's Services: one for clients, one for the proxies among themselves.

    v1.6 also sends clients to pods that are not Ready, e.g. to terminating ones.
    """
    ports = [port("tiproxy-api", API_PORT), port("tiproxy-sql", SQL_PORT)]
    among_members = [port("tiproxy-api", API_PORT), port("tiproxy-peer", PEER_PORT)]
    return [end_user(tc, "tiproxy", {"type": "NodePort", "ports": ports}, {}, {}), peer(tc, "tiproxy", among_members)]


def content(tc: TidbCluster) -> Content:
    """The texts of TiProxy's ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    tables = component(tc, "tiproxy").config_tables()
    config.put(tables, "workdir", "/var/lib/tiproxy/work")
    config.put(tables, "proxy.pd-addrs", _pd_address(tc))
    config.put_if_absent(tables, "proxy.require-backend-tls", False)
    configure(tc, tables)
    texts = {CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: start_script(tc)}
    return Content(texts, start_script_options(tc))


def start_script(tc: TidbCluster) -> str:
    """The text of `start.sh` (7.7), which is the same in both script versions."""
    return assemble(
        "#!/bin/sh",
        "Starts TiProxy in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, "tiproxy", literal=True),
        fragment("start", __package__),
    )


def start_script_options(tc: TidbCluster) -> Json:
    """The options of the spec that affect the script."""
    return {"clusterDomain": tc.spec.cluster_domain} if tc.spec.cluster_domain else {}


def _pd_address(tc: TidbCluster) -> str:
    """PD's address. The Service of a cluster elsewhere has its full name, which v1.6 omits."""
    reference = referenced_cluster(tc)
    if reference is None:
        return f"{member_name(tc, 'pd')}:{PD_CLIENT_PORT}"
    domain = f".{reference.cluster_domain}" if reference.cluster_domain else ""
    namespace = reference.namespace or tc.metadata.namespace
    return f"{reference.name}-pd.{namespace}.svc{domain}:{PD_CLIENT_PORT}"


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """TiProxy's StatefulSet, whose pods read the ConfigMap of that name."""
    own = component(tc, "tiproxy")
    spec, secrets = own.spec, certificates(tc)
    assert isinstance(spec, TiProxySpec)
    container = pod.main_container(
        own,
        command=["/bin/sh", f"{_DIRECTORY}/start.sh"],
        ports=[
            pod.container_port("tiproxy", SQL_PORT),
            pod.container_port("tiproxy-api", API_PORT),
            pod.container_port("tiproxy-peer", PEER_PORT),
        ],
        mounts=[
            volumes.mount("config", _DIRECTORY, read_only=True),
            volumes.ANNOTATIONS_MOUNT,
            *(each.mount for each in secrets),
            *volumes.storage_volume_mounts("tiproxy", spec.storage_volumes),
            *spec.additional_volume_mounts,
        ],
        builtin_env=[
            pod.POD_NAME,
            pod.NAMESPACE,
            pod.env("HEADLESS_SERVICE_NAME", peer_service(tc, "tiproxy")),
        ],
    )
    template = pod.pod_template(
        own,
        containers=[container],
        volumes=[
            _files(config_map_name),
            volumes.ANNOTATIONS_VOLUME,
            *(volumes.secret_volume(each.volume, each.secret) for each in secrets),
        ],
        metrics_port=API_PORT,
        metrics_path=_METRICS,
    )
    return stateful_sets.stateful_set(own, template=template, claims=volumes.storage_volume_claims("tiproxy", spec))


def _files(config_map: str) -> Json:
    items = [{"key": CONFIG_FILE, "path": "proxy.toml"}, {"key": STARTUP_SCRIPT, "path": "start.sh"}]
    return {"name": "config", "configMap": {"name": config_map, "items": items}}
