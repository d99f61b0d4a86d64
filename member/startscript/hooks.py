"""Hooks by which a pod stops gracefully while the operator is away (ADR 19).

Before a container stops, its leaders and tables move to other pods. A hook ends well before the grace period of its
pod, whatever the servers answer. Only TiKV needs a hook at its start: it ends the eviction that the other one began.
"""

from apis.accessor import Component, component
from apis.graceful_stop import stops_gracefully
from apis.identity import scheme, tls_enabled
from apis.tidbcluster import TidbCluster
from dataplane import ticdc
from dataplane.addresses import PD_CLIENT_PORT, TIKV_STATUS_PORT
from kube.objects import Json, Object
from member.startscript import options
from member.startscript.fragments import assemble, expressions, fragment, settings

_DEFAULT_GRACE = 30
"""Kubernetes' terminationGracePeriodSeconds."""

_START_LIMIT = 600
"""Seconds for which a starting TiKV waits for PD, whose new leader lists its schedulers after minutes at worst."""

_MARK = "/var/lib/tikv/.graceful-stop"


def pd_hooks(tc: TidbCluster) -> Json:
    """The `lifecycle` of PD's container; empty unless the cluster has the annotation."""
    own = component(tc, "pd")
    if not stops_gracefully(own):
        return {}
    return {"preStop": _hook(tc, own, _limit(own), options.pd_member(tc) + _own(PD_CLIENT_PORT), fragment("stop_pd"))}


def tikv_hooks(tc: TidbCluster) -> Json:
    """The `lifecycle` of TiKV's container; empty unless the cluster has the annotation."""
    own = component(tc, "tikv")
    if not stops_gracefully(own):
        return {}
    pd = [options.pd_address(tc, with_scheme=True) + settings(MARK=_MARK)]
    if options.asks_discovery(tc):
        pd += [options.asked_once(tc, "tikv", "$CLUSTER-discovery.$NAMESPACE"), fragment("stop_verify_pd")]
    pd.append(fragment("stop_evictions"))
    start = [*pd, _own(TIKV_STATUS_PORT), fragment("start_tikv")]
    return {
        "postStart": _hook(tc, own, _START_LIMIT, *start, name="postStart"),
        "preStop": _hook(tc, own, _limit(own), *pd, fragment("stop_tikv")),
    }


def has_tikv_hooks(pod_or_stateful_set: Object) -> bool:
    """True if a pod of TiKV, or the next one of its StatefulSet, marks the evictions that its stop begins."""
    return _MARK.encode() in pod_or_stateful_set.raw


def ticdc_hooks(tc: TidbCluster) -> Json:
    """The `lifecycle` of TiCDC's container; empty unless the cluster has the annotation."""
    own = component(tc, "ticdc")
    if not stops_gracefully(own):
        return {}
    return {"preStop": _hook(tc, own, _limit(own), _own(ticdc.PORT), fragment("stop_ticdc"))}


def _limit(own: Component) -> int:
    """The seconds of a hook before a stop: the last third of the grace period is the server's own."""
    grace = own.termination_grace_period_seconds
    return (_DEFAULT_GRACE if grace is None else grace) * 2 // 3


def _own(port: int) -> str:
    """The setting of OWN, the address of a port of this pod, by the name that its certificate has."""
    return expressions(OWN=f"$SCHEME://$DOMAIN:{port}")


def _hook(tc: TidbCluster, own: Component, limit: int, *parts: str, name: str = "preStop") -> Json:
    """A hook that runs a script in the container, for at most `limit` seconds."""
    certificates = f"/var/lib/{own.name}-tls" if tls_enabled(tc) else ""
    script = assemble(
        "#!/bin/sh",
        f"Lets {own.type.title} stop gracefully. Made by tidb-operator from the TidbCluster.",
        fragment("stop"),
        options.names(tc, own.name, literal=True)
        + settings(HOOK=name, LIMIT=limit, SCHEME=scheme(tc), CERTIFICATES=certificates),
        fragment("stop_tools"),
        *parts,
    )
    return {"exec": {"command": ["/bin/sh", "-c", script]}}
