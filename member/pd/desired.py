"""PD's desired objects (objects.md 2.1, 4.1, 6.4). Pure functions of a defaulted TidbCluster."""

from apis import config, images, toml
from apis.accessor import component
from apis.component_specs import PDSpec
from apis.identity import SKIP_TLS_WHEN_CONNECT_TIDB, tls_enabled
from apis.shared import ServiceSpec
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT, PD_PEER_PORT
from kube.objects import Json
from member.naming import (
    cluster_client_secret,
    cluster_secret,
    member_name,
    peer_service,
    tidb_client_secret,
)
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import end_user, of_pd, peer, port
from member.startscript import pd_script
from member.startscript.hooks import pd_hooks
from member.startscript.servers import pd_options

_TLS = "pd-tls"
_CLIENT_TLS = "cluster-client-tls"
_TIDB_CLIENT_TLS = "tidb-client-tls"


def services(tc: TidbCluster) -> list[Json]:
    """PD's Services: one for clients, one for the members among themselves."""
    peer_ports = [port("tcp-peer-2380", PD_PEER_PORT), port("tcp-peer-2379", PD_CLIENT_PORT)]
    return [_end_user_service(tc), peer(tc, "pd", peer_ports)]


def _end_user_service(tc: TidbCluster) -> Json:
    chosen = _spec(tc).service or ServiceSpec()
    return end_user(tc, "pd", of_pd(tc, "pd", chosen), chosen.labels, chosen.annotations)


def content(tc: TidbCluster) -> Content:
    """The texts of PD's ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    pd = component(tc, "pd")
    tables = pd.config_tables()
    if tls_enabled(tc):
        ca, certificate, key = volumes.certificate_files(_TLS)
        config.put(tables, "security.cacert-path", ca)
        config.put(tables, "security.cert-path", certificate)
        config.put(tables, "security.key-path", key)
    if _dashboard_uses_tls(tc):
        ca, certificate, key = volumes.certificate_files(_TIDB_CLIENT_TLS)
        config.put(tables, "dashboard.tidb-cert-path", certificate)
        config.put(tables, "dashboard.tidb-key-path", key)
        if not _skips_internal_ca(tc):
            config.put(tables, "dashboard.tidb-cacert-path", ca)
    proxy = _spec(tc).enable_dashboard_internal_proxy
    if proxy is not None:
        config.put(tables, "dashboard.internal-proxy", proxy)
    return Content({CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: pd_script(tc)}, pd_options(tc))


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """PD's StatefulSet, whose pods read the ConfigMap of that name."""
    pd, spec = component(tc, "pd"), _spec(tc)
    certificates = _certificates(tc)
    container = pod.main_container(
        pd,
        command=["/bin/sh", volumes.start_script("pd")],
        ports=[pod.container_port("server", PD_PEER_PORT), pod.container_port("client", PD_CLIENT_PORT)],
        mounts=[
            volumes.ANNOTATIONS_MOUNT,
            *volumes.config_mounts("pd"),
            volumes.mount("pd", "/var/lib/pd"),
            *volumes.certificate_mounts(certificates),
            *volumes.storage_volume_mounts("pd", spec.storage_volumes),
            *spec.additional_volume_mounts,
        ],
        builtin_env=_env(tc),
        hooks=pd_hooks(tc),
    )
    if spec.readiness_probe is not None:
        container["readinessProbe"] = pod.readiness_probe(pod.tcp_handler(PD_CLIENT_PORT), spec.readiness_probe)
    template = pod.pod_template(
        pd,
        containers=[container],
        volumes=[
            volumes.ANNOTATIONS_VOLUME,
            *volumes.config_volumes("pd", config_map_name),
            *volumes.certificate_volumes(certificates),
        ],
        metrics_port=PD_CLIENT_PORT,
    )
    return stateful_sets.stateful_set(
        pd,
        template=template,
        claims=[volumes.data_claim("pd", pd.storage_request, spec), *volumes.storage_volume_claims("pd", spec)],
    )


def _env(tc: TidbCluster) -> list[Json]:
    own_pod = [pod.POD_NAME] if component(tc, "pd").host_network else []
    return [
        pod.NAMESPACE,
        pod.env("PEER_SERVICE_NAME", peer_service(tc, "pd")),
        pod.env("SERVICE_NAME", member_name(tc, "pd")),
        pod.env("SET_NAME", member_name(tc, "pd")),
        pod.env("TZ", tc.spec.timezone),
        *own_pod,
    ]


def _certificates(tc: TidbCluster) -> dict[str, str]:
    """Certificate volume → Secret, in the order of the mounts."""
    secrets = {}
    if tls_enabled(tc):
        secrets[_TLS] = cluster_secret(tc, "pd")
        if _spec(tc).mount_cluster_client_secret:
            secrets[_CLIENT_TLS] = cluster_client_secret(tc)
    if _dashboard_uses_tls(tc):
        secrets[_TIDB_CLIENT_TLS] = tidb_client_secret(tc)
    return secrets


def _dashboard_uses_tls(tc: TidbCluster) -> bool:
    """True if PD's dashboard connects to TiDB with a client certificate."""
    tidb = tc.spec.tidb
    if tidb is None or tidb.tls_client is None or not tidb.tls_client.enabled:
        return False
    if SKIP_TLS_WHEN_CONNECT_TIDB in tc.metadata.annotations:
        return False
    return images.at_least(component(tc, "pd").version, "v4.0.0")


def _skips_internal_ca(tc: TidbCluster) -> bool:
    tidb = tc.spec.tidb
    return tidb is not None and tidb.tls_client is not None and tidb.tls_client.skip_internal_client_ca


def _spec(tc: TidbCluster) -> PDSpec:
    assert tc.spec.pd is not None  # `component` has checked it
    return tc.spec.pd
