"""The start scripts of TiKV, TiFlash, TiDB and Pump (objects.md 7.6, 7.7).

The scripts of TiFlash and Pump are part of their pods: a changed text restarts pods (6.8).
"""

from collections.abc import Iterable

from apis.component_specs import TiDBSpec, TiKVSpec
from apis.identity import scheme
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT
from member.naming import member_name
from member.startscript import options
from member.startscript.fragments import assemble, expressions, fragment, settings
from member.startscript.shell import expanding_strings

_TIFLASH = "/tiflash/tiflash server --config-file /data0/config.toml"


def tikv_script(tc: TidbCluster) -> str:
    """The text of `tikv_start_script.sh`; `spec.tikv` is set."""
    tikv = tc.spec.tikv
    assert tikv is not None
    v2 = options.is_v2(tc)
    waits = v2 and options.has_flag(tc, options.WAIT_FOR_OWN_ADDRESS)
    asks = options.asks_discovery(tc)
    return assemble(
        "#!/bin/sh",
        "Starts TiKV in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, "tikv", literal=v2) + options.pd_address(tc, with_scheme=not v2) + _settings(tc, tikv),
        options.wait_for_own_address(tc, "getent") if waits else "",
        options.verified_pd(tc, "tikv", with_scheme=not v2) if asks else "",
        *_arguments(tc, v2),
        fragment("tikv_start"),
    )


def _settings(tc: TidbCluster, tikv: TiKVSpec) -> str:
    data_dir = f"/var/lib/tikv/{tikv.data_sub_dir}" if tikv.data_sub_dir else "/var/lib/tikv"
    return settings(LISTEN="[::]" if tc.spec.prefer_ipv6 else "0.0.0.0", DATA_DIR=data_dir)


def _arguments(tc: TidbCluster, v2: bool) -> list[str]:
    advertise = fragment("tikv_advertise_status") if tc.spec.enable_dynamic_configuration else ""
    first, more = fragment("tikv_arguments"), fragment("tikv_more_arguments")
    return [first, more, advertise] if v2 else [first, advertise, more]


def tiflash_script(tc: TidbCluster, *, config_mounted: bool) -> str:
    """The script of TiFlash's container; with `config_mounted` the server reads the ConfigMap directly."""
    v2 = options.is_v2(tc)
    if not config_mounted:
        return _tiflash_file(fragment("prologue"), f"exec {_TIFLASH}\n") if v2 else _TIFLASH
    asks = options.asks_discovery(tc)
    return _tiflash_file(
        fragment("prologue"),
        options.names(tc, "tiflash", literal=v2) + options.pd_address(tc, with_scheme=not v2),
        options.verified_pd(tc, "tiflash", with_scheme=not v2) if asks else "",
        fragment("tiflash_arguments"),
        fragment("tiflash_advertise_status") if tc.spec.enable_dynamic_configuration else "",
        fragment("tiflash_start"),
    )


def tiflash_init_script(tc: TidbCluster) -> str:
    """The script of the init container."""
    if not options.asks_discovery(tc):
        return _fill_in("")
    names = settings(
        CLUSTER=tc.metadata.name,
        NAMESPACE=tc.metadata.namespace,
        PD=f"{scheme(tc)}://{member_name(tc, 'pd')}:{PD_CLIENT_PORT}",
    )
    return _fill_in(names + "\n" + options.verified_pd(tc, "tiflash", with_scheme=False))


def _fill_in(pd: str) -> str:
    return assemble(
        "#!/bin/sh",
        "Fills in the configuration of TiFlash. Made by tidb-operator from the TidbCluster.",
        "set -eu\n",
        pd,
        fragment("tiflash_configuration_of_pd" if pd else "tiflash_configuration"),
    )


def _tiflash_file(*parts: str) -> str:
    return assemble("#!/bin/sh", "Starts TiFlash in its pod. Made by tidb-operator from the TidbCluster.", *parts)


def tidb_script(tc: TidbCluster) -> str:
    """The text of `tidb_start_script.sh`; `spec.tidb` is set."""
    tidb = tc.spec.tidb
    assert tidb is not None
    v2 = options.is_v2(tc)
    return assemble(
        "#!/bin/sh",
        "Starts TiDB in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, "tidb", literal=v2) + options.pd_address(tc, with_scheme=False),
        options.verified_pd(tc, "tidb", with_scheme=False) if options.asks_discovery(tc) else "",
        fragment("tidb_arguments"),
        *(_optional_v2(tc, tidb) if v2 else _optional_v1(tidb)),
        _extra_arguments(tidb.arguments),
        fragment("tidb_start"),
    )


def _optional_v1(tidb: TiDBSpec) -> list[str]:
    return [fragment("tidb_binlog_by_environment"), fragment("tidb_slow_log"), _tidb_plugins(tidb, "tidb_plugins_v1")]


def _optional_v2(tc: TidbCluster, tidb: TiDBSpec) -> list[str]:
    binlog = tc.spec.pump is not None if tidb.binlog_enabled is None else tidb.binlog_enabled
    return [
        fragment("tidb_binlog") if binlog else "",
        _tidb_plugins(tidb, "tidb_plugins_v2"),
        fragment("tidb_slow_log"),
    ]


def _tidb_plugins(tidb: TiDBSpec, name: str) -> str:
    return settings(PLUGINS=",".join(tidb.plugins)) + fragment(name) if tidb.plugins else ""


def _extra_arguments(arguments: Iterable[str]) -> str:
    """The words of `spec.tidb.arguments`: as in v1.6, split at white space, with variables of the pod's environment."""
    words = [word for argument in arguments for word in expanding_strings(argument)]
    return f'set -- "$@" {" ".join(words)}\n' if words else ""


def pump_script(tc: TidbCluster, log_level: str) -> str:
    """The text of the script; `log_level` comes from the configuration."""
    asks = options.verified_pd(tc, "pump", with_scheme=True) if tc.spec.across_k8s else ""
    addresses = _pump_domain(tc) + options.pd_service(tc, with_scheme=True)
    names = settings(CLUSTER=tc.metadata.name)
    if "$NAMESPACE" in addresses + asks:
        names += settings(NAMESPACE=tc.metadata.namespace)
    return assemble(
        "#!/bin/sh",
        "Starts Pump in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue" if options.is_v2(tc) else "own_host_name"),
        names + addresses + settings(LOG_LEVEL=log_level),
        asks,
        fragment("pump_start"),
    )


def _pump_domain(tc: TidbCluster) -> str:
    """The setting of DOMAIN, without the namespace while all clients of Pump are in it."""
    suffix = f".svc.{tc.spec.cluster_domain}" if tc.spec.cluster_domain else ".svc"
    elsewhere = f".$NAMESPACE{suffix}" if tc.spec.cluster_domain or tc.spec.across_k8s else ""
    return expressions(DOMAIN=f"$POD.$CLUSTER-pump{elsewhere}")
