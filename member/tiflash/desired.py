"""TiFlash's desired objects (objects.md 4.6). Pure functions of a defaulted TidbCluster."""

from msgspec import structs

from apis import images, toml
from apis.accessor import component, container_resources, helper_image
from apis.component_specs import TiFlashInitializer, TiFlashSpec
from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from dataplane.addresses import TIFLASH_METRICS_PORT, TIFLASH_STATUS_PORT
from kube.objects import Json
from member.labels import TIFLASH_PROXY_PORT
from member.naming import cluster_secret, discovery_mtls, peer_service
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import Content
from member.objects.services import peer, port
from member.objects.volumes import capacity
from member.startscript import options, tiflash_init_script, tiflash_script
from member.tiflash.configuration import (
    LOGS,
    PROXY_TEMPLATE,
    SERVER_TEMPLATE,
    TLS_VOLUME,
    is_config_mounted,
    log_file,
    proxy_tables,
    server_tables,
)

_CONFIG_MOUNT = volumes.mount("config", "/etc/tiflash", read_only=True)
_NEWEST_OF_V16 = ("latest", "nightly", "master")
_OLD = "v4.0.0"
_CONTAINER_PORTS = ("tiflash", "proxy", "tcp", "http", "internal", "metrics")


def services(tc: TidbCluster) -> list[Json]:
    """TiFlash's Service for the members among themselves."""
    row = component(tc, "tiflash").type
    ports = [port(name, row.ports[known_as]) for name, known_as in row.peer_ports.items()]
    return [peer(tc, "tiflash", ports, used_by="")]


def content(tc: TidbCluster) -> Content:
    """The texts of TiFlash's ConfigMap; its scripts are in its pods.

    Raises InvalidField for values that validation rejects.
    """
    return Content({SERVER_TEMPLATE: toml.dumps(server_tables(tc)), PROXY_TEMPLATE: toml.dumps(proxy_tables(tc))}, {})


def configured_by_v16(tc: TidbCluster) -> Content:
    """The texts as v1.6 writes them: it treats a version without a number as old, unless it names the newest (6.7)."""
    tiflash = component(tc, "tiflash")
    if images.order(tiflash.version) != images.NEWEST or tiflash.version.partition("-")[0] in _NEWEST_OF_V16:
        return content(tc)
    old = structs.replace(_spec(tc), base_image="", image=images.with_version(tiflash.image, _OLD))
    return content(structs.replace(tc, spec=tiflash.type.replaced(tc.spec, old)))


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """TiFlash's StatefulSet, whose pods read the ConfigMap of that name. Raises InvalidField like `content`."""
    tiflash, spec = component(tc, "tiflash"), _spec(tc)
    certificates = {TLS_VOLUME: cluster_secret(tc, "tiflash")} if tls_enabled(tc) else {}
    mounted = is_config_mounted(tc)
    container = pod.main_container(
        tiflash,
        command=["/bin/sh", "-c", tiflash_script(tc, config_mounted=mounted)],
        ports=[pod.container_port(name, tiflash.type.ports[name]) for name in _CONTAINER_PORTS],
        mounts=[
            volumes.ANNOTATIONS_MOUNT,
            *_data_mounts(spec),
            *spec.additional_volume_mounts,
            *volumes.certificate_mounts(certificates),
            *([_CONFIG_MOUNT] if mounted else []),
        ],
        builtin_env=_env(tc, spec),
    )
    if spec.security_context is None:
        container["securityContext"] = {"privileged": bool(spec.privileged)}
    template = pod.pod_template(
        tiflash,
        containers=[container, *(_log_tailer(tc, sidecar) for sidecar in LOGS)],
        init_containers=[] if mounted else [_init_container(tc)],
        volumes=[
            volumes.ANNOTATIONS_VOLUME,
            {"name": "config", "configMap": {"name": config_map_name}},
            *volumes.certificate_volumes(certificates),
        ],
        metrics_port=TIFLASH_METRICS_PORT,
        sysctl_container="sysctl",
    )
    template["metadata"]["annotations"][TIFLASH_PROXY_PORT] = str(TIFLASH_STATUS_PORT)
    return stateful_sets.stateful_set(tiflash, template=template, claims=volumes.storage_claims(spec))


def _data_mounts(spec: TiFlashSpec) -> list[Json]:
    return [_data_mount(volumes.storage_claim_name(index)) for index in range(len(spec.storage_claims))]


def _data_mount(volume: str) -> Json:
    return volumes.mount(volume, f"/{volume}")


def _env(tc: TidbCluster, spec: TiFlashSpec) -> list[Json]:
    own_pod = [pod.POD_NAME] if component(tc, "tiflash").host_network else []
    return [
        pod.NAMESPACE,
        pod.env("CLUSTER_NAME", tc.metadata.name),
        pod.env("HEADLESS_SERVICE_NAME", peer_service(tc, "tiflash")),
        pod.env("CAPACITY", capacity(spec.limits)),
        pod.env("TZ", tc.spec.timezone or "UTC"),
        *own_pod,
    ]


def _log_tailer(tc: TidbCluster, sidecar: str) -> Json:
    """A sidecar that prints a log file, with a mount of the volume that the file's first directory names."""
    file = log_file(tc, sidecar)
    mount = _data_mount(file.lstrip("/").split("/")[0])
    return pod.log_tailer(component(tc, "tiflash"), sidecar, file, mount, _spec(tc).log_tailer)


def _init_container(tc: TidbCluster) -> Json:
    """The init container that fills in the configuration templates.

    If Discovery requires a client certificate, the container uses TiFlash's own image: the helper image has no curl.
    """
    own = _spec(tc).initializer or TiFlashInitializer()
    shows_certificate = options.asks_discovery(tc) and discovery_mtls(tc)
    certificates = {TLS_VOLUME: cluster_secret(tc, "tiflash")} if shows_certificate else {}
    return pod.without_unset(
        {
            "name": "init",
            "image": component(tc, "tiflash").image if shows_certificate else helper_image(tc),
            "command": ["sh", "-c", tiflash_init_script(tc)],
            "env": [pod.POD_NAME],
            "volumeMounts": [_data_mount("data0"), _CONFIG_MOUNT, *volumes.certificate_mounts(certificates)],
            "resources": container_resources(own.requests, own.limits, own.claims),
            "securityContext": own.security_context,
        }
    )


def _spec(tc: TidbCluster) -> TiFlashSpec:
    assert tc.spec.tiflash is not None  # `component` has checked it
    return tc.spec.tiflash
