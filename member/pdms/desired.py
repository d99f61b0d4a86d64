"""The desired objects of PD's microservices (objects.md 2.1, 4.2, 6.4). Pure functions of a defaulted TidbCluster."""

from apis import config, toml
from apis.accessor import component
from apis.component_specs import PDMSSpec
from apis.identity import tls_enabled
from apis.shared import ServiceSpec
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT, PD_PEER_PORT
from kube.objects import Json
from member.naming import cluster_client_secret, cluster_secret, member_name, peer_service
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import end_user, of_pd, peer, port
from member.startscript import pdms_script
from member.startscript.servers import pdms_options

_TLS = "pd-tls"
_CLIENT_TLS = "cluster-client-tls"
_SCRIPT = "pdms_start_script.sh"


def services(tc: TidbCluster, name: str) -> list[Json]:
    """The Services of a microservice: one for clients, one for the members among themselves."""
    spec, chosen = of_pd(tc, name, _spec(tc, name).service or ServiceSpec()), _spec(tc, name).service or ServiceSpec()
    peer_ports = [port("tcp-peer-2380", PD_PEER_PORT), port("tcp-peer-2379", PD_CLIENT_PORT)]
    return [end_user(tc, name, spec, chosen.labels, chosen.annotations), peer(tc, name, peer_ports)]


def content(tc: TidbCluster, name: str) -> Content:
    """The texts of the ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    tables = component(tc, name).config_tables()
    if tls_enabled(tc):
        ca, certificate, key = volumes.certificate_files(_TLS)
        config.put(tables, "security.cacert-path", ca)
        config.put(tables, "security.cert-path", certificate)
        config.put(tables, "security.key-path", key)
    return Content({CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: pdms_script(tc, name)}, pdms_options(tc, name))


def stateful_set(tc: TidbCluster, name: str, config_map_name: str) -> Json:
    """The StatefulSet of a microservice, whose pods read the ConfigMap of that name."""
    own, spec = component(tc, name), _spec(tc, name)
    certificates = _certificates(tc, spec)
    container = pod.main_container(
        own,
        command=["/bin/sh", f"/usr/local/bin/{_SCRIPT}"],
        ports=[pod.container_port("server", PD_CLIENT_PORT)],
        mounts=[
            volumes.ANNOTATIONS_MOUNT,
            *volumes.config_mounts("pd"),
            *volumes.certificate_mounts(certificates),
            *volumes.storage_volume_mounts(name, spec.storage_volumes),
            *spec.additional_volume_mounts,
        ],
        builtin_env=_env(tc, name),
    )
    template = pod.pod_template(
        own,
        containers=[container],
        volumes=[
            volumes.ANNOTATIONS_VOLUME,
            volumes.config_map_volume("config", config_map_name, CONFIG_FILE, "pd.toml"),
            volumes.config_map_volume("startup-script", config_map_name, STARTUP_SCRIPT, _SCRIPT),
            *volumes.certificate_volumes(certificates),
        ],
        metrics_port=PD_CLIENT_PORT,
    )
    return stateful_sets.stateful_set(own, template=template, claims=volumes.storage_volume_claims(name, spec))


def as_built_by_v16(tc: TidbCluster, name: str, made: Json) -> Json:
    """The same without what v1.6 ignores: the cluster's ServiceAccount, and mounts without volumes (objects.md 3.5)."""
    spec, containers = _spec(tc, name), made["spec"]["template"]["spec"]["containers"]
    ignored = [] if spec.storage_volumes else spec.additional_volume_mounts
    mounted = pod.without_mounts(containers, name, ignored)
    return pod.with_other_fields(made, {"serviceAccountName": spec.service_account, "containers": mounted})


def _env(tc: TidbCluster, name: str) -> list[Json]:
    return [
        pod.NAMESPACE,
        pod.env("PEER_SERVICE_NAME", peer_service(tc, name)),
        pod.env("SERVICE_NAME", member_name(tc, name)),
        pod.env("SET_NAME", member_name(tc, name)),
        pod.env("TZ", tc.spec.timezone),
        pod.env("CLUSTER_NAME", tc.metadata.name),
        pod.env("HEADLESS_SERVICE_NAME", peer_service(tc, name)),
        *([pod.POD_NAME] if component(tc, name).host_network else []),
    ]


def _certificates(tc: TidbCluster, spec: PDMSSpec) -> dict[str, str]:
    """Certificate volume → Secret, in the order of the mounts: PD's own certificate."""
    if not tls_enabled(tc):
        return {}
    own = {_TLS: cluster_secret(tc, "pd")}
    return own | {_CLIENT_TLS: cluster_client_secret(tc)} if spec.mount_cluster_client_secret else own


def _spec(tc: TidbCluster, name: str) -> PDMSSpec:
    spec = component(tc, name).spec
    assert isinstance(spec, PDMSSpec)
    return spec
