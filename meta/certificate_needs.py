"""The Secrets with certificates that a cluster needs (objects.md 9.1): pods or the operator mount or read them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from apis.cluster import Cluster
from apis.component_specs import TiDBTLSClient
from apis.components import component_types
from apis.dmcluster import DMCluster
from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from dataplane.certificates import Role
from member.components import workload, workload_names
from member.naming import (
    address_book,
    cluster_client_secret,
    cluster_secret,
    discovery_mtls,
    member_name,
    peer_service,
    pod_name,
)

_DISCOVERY = "discovery"


@dataclass(frozen=True, slots=True)
class Need:
    """A Secret and its requirements.

    `components` are the servers that present its certificate; `mounted_by` are the components whose pods mount it.
    `internal` certificates serve between the components, which all trust each other; the trust of SQL clients is not
    checked. `has_ca`: a program reads its `ca.crt`.
    """

    secret: str
    role: Role = Role.SERVER
    components: tuple[str, ...] = ()
    mounted_by: tuple[str, ...] = ()
    internal: bool = True
    has_ca: bool = True


def needs(tc: Cluster) -> Mapping[str, Need]:
    """The needs of a cluster by the name of the Secret; empty without TLS."""
    if not tls_enabled(tc) and not _takes_tls_of_clients(tc):
        # a shortcut: computing the mounts takes a while
        return {}
    found: dict[str, Need] = {}
    for need in _all(tc):
        known = found.get(need.secret, need)
        found[need.secret] = replace(
            known,
            components=tuple(dict.fromkeys((*known.components, *need.components))),
            mounted_by=tuple(dict.fromkeys((*known.mounted_by, *need.mounted_by))),
            has_ca=known.has_ca or need.has_ca,
        )
    return found


def dialled_hosts(tc: Cluster, need: Need) -> tuple[str, ...]:
    """Host names that clients certainly dial, one for each form of name."""
    return tuple(host for component in need.components for host in _dialled(tc, component)) if need.internal else ()


def all_hosts(tc: Cluster, need: Need) -> tuple[str, ...]:
    """All names and addresses that the certificate should cover."""
    namespace, domain = tc.metadata.namespace or "default", tc.spec.cluster_domain
    endings = ("", f".{namespace}", f".{namespace}.svc", *([f".{namespace}.svc.{domain}"] if domain else []))
    bases = (
        base
        for component in need.components
        for base in (member_name(tc, component), peer_service(tc, component), f"*.{peer_service(tc, component)}")
    )
    names = dict.fromkeys(f"{base}{ending}" for base in bases for ending in endings)
    return (*names, "localhost", "127.0.0.1", "::1")


def _dialled(tc: Cluster, component: str) -> tuple[str, ...]:
    if component == _DISCOVERY:
        return (f"{member_name(tc, component)}.{tc.metadata.namespace}",)
    if isinstance(tc, DMCluster):
        pod = f"{pod_name(tc, component, 0)}.{peer_service(tc, component)}"
        return (pod, f"{pod}.{tc.metadata.namespace}")
    ending = f"svc.{tc.spec.cluster_domain}" if tc.spec.cluster_domain else "svc"
    pod = f"{pod_name(tc, component, 0)}.{peer_service(tc, component)}.{tc.metadata.namespace}.{ending}"
    return (pod, address_book(tc).pd_host) if component == "pd" else (pod,)


def _takes_tls_of_clients(tc: Cluster) -> bool:
    client = _tls_of_clients(tc)
    return client is not None and client.enabled


def _tls_of_clients(tc: Cluster) -> TiDBTLSClient | None:
    return tc.spec.tidb.tls_client if isinstance(tc, TidbCluster) and tc.spec.tidb else None


def _all(tc: Cluster) -> Iterator[Need]:
    if tls_enabled(tc):
        yield Need(cluster_client_secret(tc), Role.CLIENT)
    if discovery_mtls(tc):
        yield Need(cluster_secret(tc, _DISCOVERY), components=(_DISCOVERY,))
    present = {component_type.name for component_type in component_types(tc.kind) if component_type.slot.spec(tc.spec)}
    for name in workload_names(tc.kind):
        if name in present and not workload(name).unused(tc):
            yield from _mounted(tc, name)


def _mounted(tc: Cluster, component: str) -> Iterator[Need]:
    """The Secrets that a component's pods mount, found by the names of the volumes."""
    pod = workload(component).stateful_set(tc, "")["spec"]["template"]["spec"]
    secrets = {each["name"]: each["secret"]["secretName"] for each in pod.get("volumes") or () if "secret" in each}
    own = {component_type.certificate_volume for component_type in component_types(tc.kind)}
    client = _tls_of_clients(tc)
    for volume, secret in secrets.items():
        if volume in own:
            yield Need(secret, components=(component,), mounted_by=(component,))
        elif volume == "cluster-client-tls":
            yield Need(secret, Role.CLIENT, mounted_by=(component,))
        elif volume == "tidb-server-tls":
            demands = client is not None and not client.disable_client_authn
            yield Need(secret, components=(component,), mounted_by=(component,), internal=False, has_ca=demands)
        elif volume == "tidb-client-tls":
            skips = client is not None and client.skip_internal_client_ca
            yield Need(secret, Role.CLIENT, mounted_by=(component,), internal=False, has_ca=not skips)
