"""The start scripts of PD and its microservices (objects.md 7.4, 7.5), TiKV, TiFlash, TiDB and Pump (7.6, 7.7).

The scripts of TiFlash and Pump are part of their pods: a changed text restarts pods (6.8).

The options of a spec that show in the text of a script are recorded beside it (7.2). If the options are unchanged and
the text differs, the operator changed the script, not the user, and a running database keeps its text
(`member.objects.config_map`). Only options that differ from the default are listed, so that a new option leaves old
lists unchanged.
"""

from collections.abc import Iterable

from apis import images
from apis.accessor import component
from apis.component_specs import PDSpec, TiDBSpec, TiKVSpec
from apis.identity import scheme, tls_enabled
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT
from kube.objects import Json
from member.naming import discovery_mtls, member_name, referenced_cluster
from member.startscript import options
from member.startscript.fragments import assemble, expanding_strings, expressions, fragment, settings

_NAMED_SINCE = "v8.3.0"


def pd_script(tc: TidbCluster) -> str:
    """The text of `pd_start_script.sh`; `spec.pd` is set."""
    pd = tc.spec.pd
    assert pd is not None
    v2 = options.is_v2(tc) or _is_api_only(tc, pd)
    bash = v2 and options.has_flag(tc, options.BASH_SHEBANG)
    return assemble(
        "#!/bin/bash" if bash else "#!/bin/sh",
        "Starts PD in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, "pd", literal=v2) + _pd_settings(tc, pd),
        _wait_v2(tc, pd) if v2 else options.wait_for_any_address(tc, _lookup_v1(pd)),
        fragment("pd_arguments"),
        fragment("pd_api_only") if _is_api_only(tc, pd) else "",
        _join(tc, v2=v2),
        fragment("pd_start"),
    )


def _is_api_only(tc: TidbCluster, pd: PDSpec) -> bool:
    return bool(tc.spec.pdms) and pd.mode == "ms"


def _pd_settings(tc: TidbCluster, pd: PDSpec) -> str:
    data_dir = f"/var/lib/pd/{pd.data_sub_dir}" if pd.data_sub_dir else "/var/lib/pd"
    return options.pd_member(tc) + settings(SCHEME=scheme(tc), DATA_DIR=data_dir)


def _lookup_v1(pd: PDSpec) -> str:
    return "dig" if pd.start_up_script_version == "v1" else "nslookup"


def _wait_v2(tc: TidbCluster, pd: PDSpec) -> str:
    if options.has_flag(tc, options.NO_WAIT_DNS):
        return ""
    if not _is_api_only(tc, pd) and not options.has_flag(tc, options.WAIT_FOR_OWN_ADDRESS):
        return options.wait_for_any_address(tc, "dig")
    wait = options.wait_for_own_address(tc, "dig")
    if pd.init_wait_time <= 0:
        return wait
    return f"{settings(INITIAL_WAIT=pd.init_wait_time)}{fragment('initial_wait')}\n{wait}"


def _join(tc: TidbCluster, *, v2: bool) -> str:
    if hosts := options.preferred_pd(tc, v2=v2):
        urls = ",".join(f"{scheme(tc)}://{host}:{PD_CLIENT_PORT}" for host in hosts)
        return f"{settings(JOIN=urls)}{fragment('pd_join_given')}\n{fragment('random')}"
    host = "$CLUSTER-discovery.$NAMESPACE" if v2 else "$CLUSTER-discovery.$NAMESPACE.svc"
    return f"{options.discovery(tc, 'pd', host)}\n{fragment('pd_join')}"


def pdms_script(tc: TidbCluster, name: str) -> str:
    """The text of `pdms_start_script.sh` for a microservice."""
    return assemble(
        "#!/bin/sh",
        f"Starts PD's microservice {name} in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, name, literal=True) + _pdms_settings(tc, name) + _pd(tc),
        options.wait_for_own_address(tc, "dig"),
        options.verified_pd(tc, "pd", with_scheme=True) if _asks_discovery(tc) else fragment("random"),
        fragment("pdms_start"),
    )


def has_name(tc: TidbCluster, name: str) -> bool:
    """True if the members of a microservice have names."""
    return images.at_least(component(tc, name).version, _NAMED_SINCE)


def _pdms_settings(tc: TidbCluster, name: str) -> str:
    member = ("$DOMAIN" if tc.spec.cluster_domain else "$POD") if has_name(tc, name) else ""
    return settings(SERVICE=name, SCHEME=scheme(tc)) + expressions(MEMBER=member)


def _preferred(tc: TidbCluster) -> list[str]:
    """The hosts that the flag prefers; microservices use it with scripts of both generations."""
    return options.preferred_pd(tc, v2=True)


def _pd(tc: TidbCluster) -> str:
    if hosts := _preferred(tc):
        return settings(PD=",".join(f"{scheme(tc)}://{host}:{PD_CLIENT_PORT}" for host in hosts))
    return options.pd_service(tc, with_scheme=True)


def _asks_discovery(tc: TidbCluster) -> bool:
    return tc.spec.across_k8s and not _preferred(tc)


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
        options.names(tc, "tikv", literal=v2) + options.pd_address(tc, with_scheme=not v2) + _server_settings(tc, tikv),
        options.wait_for_own_address(tc, "getent") if waits else "",
        options.verified_pd(tc, "tikv", with_scheme=not v2) if asks else "",
        *_arguments(tc, v2),
        fragment("tikv_start"),
    )


def _server_settings(tc: TidbCluster, tikv: TiKVSpec) -> str:
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
        tici = tc.spec.tici
        return _fill_in("", has_keys=bool(tici and tici.s3 and tici.s3.secret_name))
    names = settings(
        CLUSTER=tc.metadata.name,
        NAMESPACE=tc.metadata.namespace,
        PD=f"{scheme(tc)}://{member_name(tc, 'pd')}:{PD_CLIENT_PORT}",
    )
    return _fill_in(names + "\n" + options.verified_pd(tc, "tiflash", with_scheme=False))


def _fill_in(pd: str, *, has_keys: bool = False) -> str:
    """The script; with `has_keys` it appends the keys of the bucket of full-text indexes, the last section."""
    return assemble(
        "#!/bin/sh",
        "Fills in the configuration of TiFlash. Made by tidb-operator from the TidbCluster.",
        "set -eu\n",
        pd,
        fragment("tiflash_configuration_of_pd" if pd else "tiflash_configuration"),
        settings(FILE="/data0/config.toml") + fragment("bucket_keys") if has_keys else "",
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


_DEFAULT_START_TIMEOUT = 30


def pd_options(tc: TidbCluster) -> Json:
    """The options of PD's start script."""
    pd = tc.spec.pd
    assert pd is not None
    microservices = bool(tc.spec.pdms) and pd.mode == "ms"
    options = _common(tc) | _given(
        dataSubDir=pd.data_sub_dir,
        startUpScriptVersion=pd.start_up_script_version,
        startTimeout=_start_timeout(pd),
        initWaitTime=pd.init_wait_time,
        microservices=microservices,
    )
    return options | _second_generation(tc) if microservices else options


def pdms_options(tc: TidbCluster, name: str) -> Json:
    """The options of a PD microservice's start script, also v1.6's, which has one script for both generations."""
    return (
        _common(tc) | _second_generation(tc) | _given(startTimeout=_start_timeout(tc.spec.pd), named=has_name(tc, name))
    )


def tikv_options(tc: TidbCluster) -> Json:
    """The options of TiKV's start script."""
    tikv = tc.spec.tikv
    assert tikv is not None
    return _common(tc) | _given(
        dataSubDir=tikv.data_sub_dir,
        enableDynamicConfiguration=tc.spec.enable_dynamic_configuration,
        preferIPv6=tc.spec.prefer_ipv6,
        startTimeout=_start_timeout(tc.spec.pd) if _is_v2(tc) else None,
    )


def tidb_options(tc: TidbCluster) -> Json:
    """The options of TiDB's start script."""
    tidb = tc.spec.tidb
    assert tidb is not None
    # v1 reads this from the pod's environment
    binlog = _is_v2(tc) and (tc.spec.pump is not None if tidb.binlog_enabled is None else tidb.binlog_enabled)
    return _common(tc) | _given(plugins=tidb.plugins, arguments=tidb.arguments, binlogEnabled=binlog)


def _common(tc: TidbCluster) -> Json:
    reference = referenced_cluster(tc)
    options = _given(
        tls=tls_enabled(tc),
        discoveryMTLS=discovery_mtls(tc),
        clusterDomain=tc.spec.cluster_domain,
        acrossK8s=tc.spec.across_k8s,
        cluster=[reference.namespace, reference.name, reference.cluster_domain] if reference else None,
    )
    return options | {"startScriptVersion": "v2"} | _second_generation(tc) if _is_v2(tc) else options


def _second_generation(tc: TidbCluster) -> Json:
    flags = sorted(tc.spec.start_script_v2_feature_flags)
    return _given(featureFlags=flags, pdAddresses=tc.spec.pd_addresses)


def _start_timeout(pd: PDSpec | None) -> int | None:
    timeout = pd.start_timeout if pd else 0
    return None if timeout in (0, _DEFAULT_START_TIMEOUT) else timeout


def _is_v2(tc: TidbCluster) -> bool:
    return tc.spec.start_script_version == "v2"


def _given(**options: object) -> Json:
    return {name: value for name, value in options.items() if value}
