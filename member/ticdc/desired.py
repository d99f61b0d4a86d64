"""TiCDC's desired objects (objects.md 4.7, 7.7): pure functions of a defaulted TidbCluster."""

from apis import toml
from apis.accessor import component
from apis.component_specs import TiCDCSpec
from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from apis.toml import Table
from dataplane.ticdc import PORT
from kube.objects import Json
from member.naming import cluster_client_secret, cluster_secret, peer_service
from member.objects import pod, volumes
from member.objects import stateful_set as stateful_sets
from member.objects.config_map import CONFIG_FILE, Content
from member.objects.services import peer, port
from member.startscript import options
from member.startscript.fragments import assemble, fragment, settings
from member.startscript.hooks import ticdc_hooks

_SINKS = "/var/lib/sink-tls"
_ELSEWHERE = frozenset({"tz", "gc-ttl", "log-level", "log-file"})
"""The keys that the script passes as flags or in the environment; if there are no others, there is no file (1.1)."""
_GC_TTL = 86400


def services(tc: TidbCluster) -> list[Json]:
    """TiCDC's headless Service, which only captures and users' tools use."""
    return [peer(tc, "ticdc", [port("ticdc", PORT)], used_by="")]


def content(tc: TidbCluster) -> Content:
    """The text of TiCDC's ConfigMap, if it has one. Raises InvalidField for values that validation rejects."""
    text = config_file(tc)
    return Content({CONFIG_FILE: text} if text else {}, {})


def stateful_set(tc: TidbCluster, config_map_name: str) -> Json:
    """TiCDC's StatefulSet, whose pods read the ConfigMap of that name if there is a configuration."""
    own = component(tc, "ticdc")
    spec, secrets = own.spec, _certificates(tc)
    assert isinstance(spec, TiCDCSpec)
    has_file, is_v2 = bool(config_file(tc)), options.is_v2(tc)
    container = pod.main_container(
        own,
        command=["/bin/sh", "-c", start_script(tc)],
        ports=[pod.container_port("ticdc", PORT)],
        mounts=[
            *([volumes.ANNOTATIONS_MOUNT] if is_v2 else []),
            *volumes.certificate_mounts(secrets),
            *volumes.storage_volume_mounts("ticdc", spec.storage_volumes),
            *spec.additional_volume_mounts,
            *([volumes.mount("config", "/etc/ticdc", read_only=True)] if has_file else []),
            *(volumes.mount(name, f"{_SINKS}/{name}", read_only=True) for name in spec.tls_client_secret_names),
        ],
        builtin_env=[
            pod.POD_NAME,
            pod.NAMESPACE,
            pod.env("HEADLESS_SERVICE_NAME", peer_service(tc, "ticdc")),
            pod.env("TZ", time_zone(tc)),
        ],
        hooks=ticdc_hooks(tc),
    )
    template = pod.pod_template(
        own,
        containers=[container],
        volumes=[
            *([volumes.ANNOTATIONS_VOLUME] if is_v2 else []),
            *volumes.certificate_volumes(secrets),
            *(volumes.secret_volume(name, name) for name in spec.tls_client_secret_names),
            *([_file(config_map_name)] if has_file else []),
        ],
        metrics_port=PORT,
    )
    return stateful_sets.stateful_set(own, template=template, claims=volumes.storage_volume_claims("ticdc", spec))


def _file(config_map: str) -> Json:
    return volumes.config_map_volume("config", config_map, CONFIG_FILE, "ticdc.toml")


def _certificates(tc: TidbCluster) -> dict[str, str]:
    """Certificate volume → Secret, in the order of the mounts."""
    if not tls_enabled(tc):
        return {}
    return {"ticdc-tls": cluster_secret(tc, "ticdc"), "cluster-client-tls": cluster_client_secret(tc)}


def start_script(tc: TidbCluster) -> str:
    """The script in the container's command (7.7).

    Only pods with v2 scripts have the annotations that the prologue reads.
    """
    return assemble(
        "#!/bin/sh",
        "Starts TiCDC in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue") if options.is_v2(tc) else f"set -u\n{_own('pod_name')}",
        options.names(tc, "ticdc", literal=True) + _pd(tc) + _flags(tc),
        options.verified_pd(tc, "ticdc", with_scheme=True) if options.asks_discovery(tc) else "",
        _own("start"),
        _own("certificates") if tls_enabled(tc) else "",
        'set -- "$@" --newarch=true\n' if tc.spec.tici else "",
        _own("configuration") if config_file(tc) else "",
        _own("run"),
    )


def _own(name: str) -> str:
    return fragment(name, __package__)


def _pd(tc: TidbCluster) -> str:
    """The setting of PD's address; a preferred address keeps the user's notation (7.3)."""
    if options.preferred_pd(tc, v2=options.is_v2(tc)):
        return settings(PD=",".join(tc.spec.pd_addresses))
    return options.pd_address(tc, with_scheme=True)


def _flags(tc: TidbCluster) -> str:
    return settings(
        GC_TTL=gc_ttl(tc),
        LOG_FILE=log_file(tc),
        LOG_LEVEL=log_level(tc),
    )


def config_file(tc: TidbCluster) -> str:
    """The text of `ticdc.toml`; empty if there is none. Raises InvalidField; validation normally rejects it earlier."""
    tables = _tables(tc)
    rest = {key: value for key, value in tables.items() if key not in _ELSEWHERE}
    return "" if toml.same(rest, {}) else toml.dumps(tables)


def gc_ttl(tc: TidbCluster) -> int:
    """Seconds for which TiKV keeps data that TiCDC has not replicated yet."""
    given = _tables(tc).get("gc-ttl")
    return given if isinstance(given, int) and not isinstance(given, bool) else _GC_TTL


def log_file(tc: TidbCluster) -> str:
    """The path of the log file; empty for standard error."""
    return _text(tc, "log-file", "")


def log_level(tc: TidbCluster) -> str:
    """The log level."""
    return _text(tc, "log-level", "info")


def time_zone(tc: TidbCluster) -> str:
    """The time zone of the process."""
    return _text(tc, "tz", tc.spec.timezone or "UTC")


def _text(tc: TidbCluster, key: str, default: str) -> str:
    given = _tables(tc).get(key)
    return given if isinstance(given, str) else default


def _tables(tc: TidbCluster) -> Table:
    return component(tc, "ticdc").config_tables()
