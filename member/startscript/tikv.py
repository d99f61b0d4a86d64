"""TiKV's start script (objects.md 7.6)."""

from apis.component_specs import TiKVSpec
from apis.tidbcluster import TidbCluster
from member.startscript import options
from member.startscript.fragments import assemble, fragment, settings


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
