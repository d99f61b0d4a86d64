"""Pump's start script, which is part of its container's command (objects.md 7.7)."""

from apis.tidbcluster import TidbCluster
from member.startscript import options
from member.startscript.fragments import assemble, expressions, fragment, settings


def pump_script(tc: TidbCluster, log_level: str) -> str:
    """The text of the script; `log_level` comes from the configuration."""
    asks = options.verified_pd(tc, "pump", with_scheme=True) if tc.spec.across_k8s else ""
    addresses = _domain(tc) + options.pd_service(tc, with_scheme=True)
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


def _domain(tc: TidbCluster) -> str:
    """The setting of DOMAIN, without the namespace while all clients of Pump are in it."""
    suffix = f".svc.{tc.spec.cluster_domain}" if tc.spec.cluster_domain else ".svc"
    elsewhere = f".$NAMESPACE{suffix}" if tc.spec.cluster_domain or tc.spec.across_k8s else ""
    return expressions(DOMAIN=f"$POD.$CLUSTER-pump{elsewhere}")
