"""A TidbNGMonitoring's desired objects: Service, ConfigMap, StatefulSet, Secret (other-resources.md 5).

Pure functions.
"""

from apis.config import find, put, tables
from apis.config_schema import NONE
from apis.flag_settings import OF_NG_MONITORING
from apis.identity import tls_enabled
from apis.ng_monitorings import TidbNGMonitoring
from apis.problem import Problem
from apis.shared import ComponentSpec
from apis.tidbcluster import TidbCluster
from apis.toml import dumps
from kube.objects import Json
from member.naming import cluster_client_secret, pd_url
from member.objects import single_pod
from member.objects.config_map import CONFIG_FILE, ROLLING_UPDATE, ConfigMapChoice, Content, choose_config_map
from member.objects.pod import POD_NAME, env, without_unset
from member.objects.services import port
from member.objects.single_pod import Server
from member.objects.volumes import certificate_mounts, certificate_volumes, config_map_volume, mount, tls_directory
from member.startscript.fragments import assemble, fragment, settings

NAME = "ng-monitoring"
PORT = 12020
CERTIFICATE_KEYS = ("ca.crt", "tls.crt", "tls.key")
_TLS = "tc-client-tls"
_DIRECTORY = "/var/lib/ng-monitoring"
_CONFIG = "/etc/ng-monitoring"


def own_labels(monitoring: TidbNGMonitoring) -> dict[str, str]:
    """The labels of all its objects."""
    return single_pod.resource_labels("tidb-ng-monitoring", monitoring.metadata.name, NAME)


def object_name(monitoring: TidbNGMonitoring) -> str:
    """The name of Service and StatefulSet, and base of the ConfigMap's name: `<ngm>-ng-monitoring`."""
    return f"{monitoring.metadata.name}-{NAME}"


def source_secret(tc: TidbCluster) -> str:
    """The Secret beside the TidbCluster with the client certificate; empty without TLS."""
    return cluster_client_secret(tc) if tls_enabled(tc) else ""


def certificates(monitoring: TidbNGMonitoring, tc: TidbCluster, source: dict[str, str]) -> Json:
    """The Secret with the certificates, from the data of `source_secret`; it exists without TLS, too."""
    data = {f"{_prefix(tc)}_{key}": source[key] for key in CERTIFICATE_KEYS if key in source}
    metadata = {"name": _secret_name(monitoring), "labels": own_labels(monitoring)}
    return {"metadata": metadata, "type": "Opaque", "data": data}


def service(monitoring: TidbNGMonitoring) -> Json:
    """The headless Service."""
    selector = own_labels(monitoring)
    spec = without_unset(
        {
            "clusterIP": "None",
            "ports": [port(NAME, PORT)],
            "publishNotReadyAddresses": True,
            "selector": selector,
            "ipFamilyPolicy": "PreferDualStack" if monitoring.spec.prefer_ipv6 else None,
        }
    )
    return {"metadata": {"name": object_name(monitoring), "labels": selector}, "spec": spec}


def choose(monitoring: TidbNGMonitoring, tc: TidbCluster, in_use_name: str, in_use: Json | None) -> ConfigMapChoice:
    """The name and text of the configuration; see `choose_config_map`. Raises InvalidField."""
    strategy = _pod_settings(monitoring).config_update_strategy or ROLLING_UPDATE
    content = Content({CONFIG_FILE: _configuration(monitoring, tc)}, {})
    return choose_config_map(object_name(monitoring), content, strategy, in_use_name, in_use)


def config_map(monitoring: TidbNGMonitoring, choice: ConfigMapChoice) -> Json:
    """The ConfigMap for a choice."""
    return {"metadata": {"name": choice.name, "labels": own_labels(monitoring)}, "data": dict(choice.data)}


def stateful_set(monitoring: TidbNGMonitoring, tc: TidbCluster, config_map_name: str) -> Json:
    """The StatefulSet with the pod."""
    spec, own, name = _pod_settings(monitoring), monitoring.spec.ng_monitoring, object_name(monitoring)
    secrets = {_TLS: _secret_name(monitoring)} if tls_enabled(tc) else {}
    server = Server(
        name=NAME,
        port=PORT,
        image=single_pod.image_of(spec, own.base_image),
        command=["/bin/sh", "-c", _script(monitoring, tc)],
        env=[env("HEADLESS_SERVICE_NAME", name), POD_NAME],
        mounts=[
            mount("config", _CONFIG, read_only=True),
            *single_pod.data_mounts(NAME, NAME, _DIRECTORY, own.storage_volumes),
            *certificate_mounts(secrets),
        ],
        volumes=[
            config_map_volume("config", config_map_name, CONFIG_FILE, "ng-monitoring.toml"),
            *certificate_volumes(secrets),
        ],
        claims=single_pod.claims(NAME, NAME, own, own.storage_class_name, own.storage_volumes),
    )
    return single_pod.stateful_set(spec, server, name, name, own_labels(monitoring))


def script_options(monitoring: TidbNGMonitoring, tc: TidbCluster) -> dict[str, str]:
    """The user's options that affect the start script."""
    meta, domain = monitoring.metadata, monitoring.spec.cluster_domain
    return {
        "PD": pd_url(tc).partition("://")[2],
        "DOMAIN": f"{object_name(monitoring)}.{meta.namespace}" + (f".svc.{domain}" if domain else ""),
        "RETENTION": monitoring.spec.ng_monitoring.retention_period,
    }


def config_tables(monitoring: TidbNGMonitoring) -> Json:
    """The configuration as the user wrote it. Raises InvalidField."""
    return tables(monitoring.spec.ng_monitoring.config, NONE, "spec.ngMonitoring.config")


def overridden(monitoring: TidbNGMonitoring) -> list[Problem]:
    """The settings without effect, because the start script passes flags for them. Raises InvalidField."""
    written, has_retention = config_tables(monitoring), bool(monitoring.spec.ng_monitoring.retention_period)
    return [
        Problem(
            f"spec.ngMonitoring.config.{path}",
            value,
            f"has no effect, because the start script passes --{flag}; {setting.instead}",
        )
        for flag, setting in OF_NG_MONITORING.items()
        if setting.path and (has_retention or not setting.sometimes)
        for path, value in find(written, setting.path)
    ]


def _configuration(monitoring: TidbNGMonitoring, tc: TidbCluster) -> str:
    found = config_tables(monitoring)
    if tls_enabled(tc):
        files = (f"{tls_directory(_TLS)}/{_prefix(tc)}_{key}" for key in CERTIFICATE_KEYS)
        for name, file in zip(("ca-path", "cert-path", "key-path"), files, strict=True):
            put(found, f"security.{name}", file)
    return dumps(found)


def _pod_settings(monitoring: TidbNGMonitoring) -> ComponentSpec:
    return single_pod.levelled(monitoring.spec, monitoring.spec.ng_monitoring)


def _prefix(tc: TidbCluster) -> str:
    return f"{tc.metadata.name}_{tc.metadata.namespace}"


def _secret_name(monitoring: TidbNGMonitoring) -> str:
    return f"{monitoring.metadata.name}-tc-client-tls"


def _script(monitoring: TidbNGMonitoring, tc: TidbCluster) -> str:
    chosen = script_options(monitoring, tc)
    return assemble(
        "#!/bin/sh",
        "Starts ng-monitoring in its pod. Made by tidb-operator from the TidbCluster.",
        settings(PD=chosen["PD"], DOMAIN=chosen["DOMAIN"], PORT=PORT, RETENTION=chosen["RETENTION"]),
        fragment("start", __package__),
    )
