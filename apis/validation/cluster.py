"""All rules of a cluster's own spec, in one pass (defaults-and-validation.md 3)."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from apis import images
from apis.accessor import Component, components
from apis.cluster import Cluster
from apis.component_specs import DiscoverySpec, PDMSSpec, PDSpec, TiCDCSpec, TiDBSpec, TiFlashSpec, TiKVSpec
from apis.dm_components import DMMasterSpec
from apis.dmcluster import DMCluster
from apis.problem import Problem
from apis.shared import ScalePolicy
from apis.tidbcluster import TidbCluster
from apis.validation import annotations, configuration, containers, listening, names, pods, ranges, tici, volumes
from ports import duration

_FIRST_DM = (2, 0, 0)
_TOO_OLD = "must be v2.0.0 or newer, whose masters keep a quorum"

START_SCRIPT_FLAGS = ("WaitForDnsNameIpMatch", "PreferPDAddressesOverDiscovery", "BashShebang", "NoWaitDNS")


def validate(tc: Cluster) -> list[Problem]:
    """Everything that is wrong with a defaulted cluster's spec; empty when nothing is."""
    problems = [*annotations.check(tc), *pods.check_labels(tc.spec.labels, "spec.labels")]
    problems += pods.check_sysctls(tc.spec.pod_security_context, "spec")
    problems += _check_dm_cluster(tc) if isinstance(tc, DMCluster) else ()
    problems += _check_tidb_cluster(tc) if isinstance(tc, TidbCluster) else ()
    for component in components(tc):
        problems += _check_component(component)
    return problems


def _check_dm_cluster(dc: DMCluster) -> Iterator[Problem]:
    """Rules of DM alone (3.5): there are masters, and what the operator knows is v2."""
    if dc.spec.master is None:
        yield Problem("spec.master", None, "is required; a DMCluster has masters, such as 3")
    if images.order(dc.spec.version) < _FIRST_DM:
        yield Problem("spec.version", dc.spec.version, _TOO_OLD)
    for index, name in enumerate(dc.spec.tls_client_secret_names):
        if not name or name in dc.spec.tls_client_secret_names[:index]:
            yield Problem(f"spec.tlsClientSecretNames[{index}]", name, "must name each Secret once")


def _check_tidb_cluster(tc: TidbCluster) -> Iterator[Problem]:
    yield from _check_names(tc)
    for index, address in enumerate(tc.spec.pd_addresses):
        if not _is_http_url(address):
            yield Problem(f"spec.pdAddresses[{index}]", address, "must be a URL such as http://pd.example.com:2379")
    for index, flag in enumerate(tc.spec.start_script_v2_feature_flags):
        if flag not in START_SCRIPT_FLAGS:
            message = f"must be one of {', '.join(START_SCRIPT_FLAGS)}"
            yield Problem(f"spec.startScriptV2FeatureFlags[{index}]", flag, message)
    services = [entry.name for entry in tc.spec.pdms]
    for index, name in enumerate(services):
        if name in services[:index]:
            yield Problem(f"spec.pdms[{index}].name", name, "is a duplicate; keep one entry per microservice")
    yield from tici.check(tc)


def _check_names(tc: TidbCluster) -> Iterator[Problem]:
    """The parts of addresses; a cluster with an invalid part cannot run."""
    other, domain = tc.spec.cluster, "must be a domain, such as cluster.local"
    named = {"spec.clusterDomain": (tc.spec.cluster_domain, names.DOMAIN, domain)}
    if other is not None:
        named["spec.cluster.name"] = other.name, names.OBJECT, "must be the name of a TidbCluster, such as basic"
        named["spec.cluster.namespace"] = other.namespace, names.NAMESPACE, "must be the name of a namespace"
        named["spec.cluster.clusterDomain"] = other.cluster_domain, names.DOMAIN, domain
    for field, (text, pattern, message) in named.items():
        if text and not pattern.fullmatch(text):
            yield Problem(field, text, message)


def _is_http_url(address: str) -> bool:
    if " " in address or not address.isprintable():
        return False
    try:
        url = urlsplit(address)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.hostname)


def _check_component(component: Component) -> Iterator[Problem]:
    yield from containers.check(component)
    yield from pods.check(component)
    yield from volumes.check(component)
    yield from configuration.check(component)
    spec, field = component.spec, component.field
    if not isinstance(spec, DiscoverySpec):
        yield from _check_replicas(component)
    if isinstance(spec, PDSpec | PDMSSpec | TiDBSpec | DMMasterSpec) and spec.service:
        yield from ranges.check(spec.service.load_balancer_source_ranges, f"{field}.service.loadBalancerSourceRanges")
    if isinstance(spec, TiKVSpec | TiDBSpec | TiFlashSpec) and spec.scale_policy:
        yield from _check_scale_policy(spec.scale_policy, f"{field}.scalePolicy")
    if isinstance(spec, TiDBSpec):
        yield from listening.check_arguments(spec, field)
    if isinstance(spec, TiKVSpec):
        yield from _check_duration(spec.evict_leader_timeout, f"{field}.evictLeaderTimeout", positive=True)
        yield from _check_duration(spec.wait_leader_transfer_back_timeout, f"{field}.waitLeaderTransferBackTimeout")
    if isinstance(spec, TiCDCSpec):
        yield from _check_duration(spec.graceful_shutdown_timeout, f"{field}.gracefulShutdownTimeout")


def _check_replicas(component: Component) -> Iterator[Problem]:
    replicas, field = component.workload.replicas, f"{component.field}.replicas"
    if replicas < 0:
        yield Problem(field, replicas, "must be at least 0")
    tc = component.tc
    if component.name == "tikv" and replicas == 0 and isinstance(tc, TidbCluster) and _holds_all_data(tc):
        message = "would delete the only copies of the data; delete the TidbCluster, or suspend it with suspendAction"
        yield Problem(field, replicas, message)


def _holds_all_data(tc: TidbCluster) -> bool:
    """True if the stores of this cluster are bootstrapped, in use by its PD, and the only ones (lifecycle.md 2.2)."""
    tikv = tc.status.tikv
    return tc.spec.pd is not None and tc.spec.pd.replicas > 0 and bool(tikv.stores) and not tikv.peer_stores


def _check_scale_policy(policy: ScalePolicy, field: str) -> Iterator[Problem]:
    steps = {
        "scaleInParallelism": policy.scale_in_parallelism,
        "scaleOutParallelism": policy.scale_out_parallelism,
    }
    for key, count in steps.items():
        if count is not None and count <= 0:
            yield Problem(f"{field}.{key}", count, "must be at least 1")


def _check_duration(text: str | None, field: str, *, positive: bool = False) -> Iterator[Problem]:
    if text is None:
        return
    try:
        length = duration.seconds(text)
    except ValueError:
        yield Problem(field, text, "must be a duration such as 90s, 10m or 1h30m")
        return
    if positive and length <= 0:
        yield Problem(field, text, "must be longer than 0")
