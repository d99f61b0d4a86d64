"""TiFlash's start script, and the script of the init container that fills in its configuration (objects.md 7.6).

Both are part of the pod: a changed text restarts pods (6.8).
"""

from apis.identity import scheme
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT
from member.naming import member_name
from member.startscript import options
from member.startscript.fragments import assemble, fragment, settings

_SERVER = "/tiflash/tiflash server --config-file /data0/config.toml"


def tiflash_script(tc: TidbCluster, *, config_mounted: bool) -> str:
    """The script of TiFlash's container; with `config_mounted` the server reads the ConfigMap directly."""
    v2 = options.is_v2(tc)
    if not config_mounted:
        return _script(fragment("prologue"), f"exec {_SERVER}\n") if v2 else _SERVER
    asks = options.asks_discovery(tc)
    return _script(
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


def _script(*parts: str) -> str:
    return assemble("#!/bin/sh", "Starts TiFlash in its pod. Made by tidb-operator from the TidbCluster.", *parts)
