"""The start scripts of PD and its microservices (objects.md 7.4, 7.5)."""

from apis import images
from apis.accessor import component
from apis.component_specs import PDSpec
from apis.identity import scheme
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT
from member.startscript import options
from member.startscript.fragments import assemble, expressions, fragment, settings

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
        options.names(tc, "pd", literal=v2) + _settings(tc, pd),
        _wait_v2(tc, pd) if v2 else options.wait_for_any_address(tc, _lookup_v1(pd)),
        fragment("pd_arguments"),
        fragment("pd_api_only") if _is_api_only(tc, pd) else "",
        _join(tc, v2=v2),
        fragment("pd_start"),
    )


def _is_api_only(tc: TidbCluster, pd: PDSpec) -> bool:
    return bool(tc.spec.pdms) and pd.mode == "ms"


def _settings(tc: TidbCluster, pd: PDSpec) -> str:
    long_name = tc.spec.across_k8s or tc.spec.cluster_domain
    data_dir = f"/var/lib/pd/{pd.data_sub_dir}" if pd.data_sub_dir else "/var/lib/pd"
    return expressions(MEMBER="$DOMAIN" if long_name else "$POD") + settings(SCHEME=scheme(tc), DATA_DIR=data_dir)


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
