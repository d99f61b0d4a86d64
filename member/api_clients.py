"""The clients with which a reconcile calls the data plane of its cluster, including certificates.

The certificates are in the user's Secret and are read live: the operator caches no Secrets.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from msgspec import structs

from apis.consent import Permission, how_to_consent
from apis.identity import tls_enabled
from apis.shared import PDMember
from dataplane.addresses import DM_MASTER_PORT, TIDB_SERVER_PORT, TIKV_SERVER_PORT, Address, Reach, host_of
from dataplane.calls import Admit, Caller
from dataplane.dm import DMMasterClient
from dataplane.errors import BadTlsMaterial, DataPlaneError, NotInCluster
from dataplane.etcd import EtcdClient
from dataplane.log_backups import LogBackupServer
from dataplane.pd import PDClient, PDReads
from dataplane.pdms import PDMSClient
from dataplane.pump import LivePumpNode, PumpClient, read_pump_nodes
from dataplane.sql import RootClient
from dataplane.tidb import TiDBClient
from dataplane.tiflash import TiFlashClient
from dataplane.tikv import TiKVClient
from dataplane.tls import TlsMaterial
from kube.errors import Forbidden
from kube.objects import Object, secret_data
from kube.resources import TIDB_CLUSTERS
from member.context import ClusterContext, DMContext, ReconcileContext
from member.naming import (
    address_book,
    cluster_client_secret,
    ordinal_of,
    pd_url,
    reach,
    referenced_cluster,
    tidb_server_secret,
    tidb_status_url,
    tiflash_status_url,
    tikv_status_url,
)
from ports.sql import SqlLogin

_T = TypeVar("_T")

_SHORT_TIMEOUT = 1.0
"""Timeout in seconds for members that are called one by one."""
_PD_SERVICE = re.compile(
    r"(?:[a-z0-9-]+\.)?(?P<cluster>[a-z0-9-]+)-pd(?:-peer)?\.(?P<namespace>[a-z0-9-]+)(?:\.svc(?:\..+)?)?\.?"
)
"""The host names of a TidbCluster's PD: of a Service, or of a pod."""


def reference_refusal(ctx: ReconcileContext) -> str:
    """Why the cluster may not refer to a TidbCluster in another namespace, or use its PD; empty if it may.

    `spec.cluster` and the hosts of `spec.pdAddresses` name such clusters. Raises ApiError, TransportError.
    """
    if ctx.reference_refusal is None:
        ctx.reference_refusal = _refused_reference(ctx) or _refused_address(ctx)
    return ctx.reference_refusal


def _refused_reference(ctx: ReconcileContext) -> str:
    """The refusal of `spec.cluster`. Asks the API server if the cache lacks the cluster.

    The owner of a cluster in another Kubernetes cluster cannot consent here. If the operator may not read a namespace,
    it has no rights there that another user could exploit.
    """
    reference = ctx.tc.spec.cluster
    if reference is None or not reference.name or reference.namespace in ("", ctx.namespace):
        return ""
    namespace, name = reference.namespace, reference.name
    try:
        found = ctx.listers.tidb_clusters.get(namespace, name) or ctx.deps.client.find(TIDB_CLUSTERS, name, namespace)
    except Forbidden:
        return ""
    may_be_beyond = reference.cluster_domain or ctx.tc.spec.across_k8s
    return "" if found is None and may_be_beyond else _refusal(ctx, namespace, name, found)


def _refused_address(ctx: ReconcileContext) -> str:
    """The refusal of the first host that names the PD of a cluster in the cache.

    Only the cache is read, as a spec may name thousands of hosts.
    """
    for namespace, name in clusters_of_addresses(ctx.tc.spec.pd_addresses):
        found = ctx.listers.tidb_clusters.get(namespace, name)
        if found is not None and (refusal := _refusal(ctx, namespace, name, found)):
            return refusal
    return ""


def _refusal(ctx: ReconcileContext, namespace: str, name: str, found: Object | None) -> str:
    permitted = ctx.settings.references.judge(ctx.namespace, namespace, found)
    return how_to_consent(ctx.namespace, TIDB_CLUSTERS.kind, namespace, name) if permitted is Permission.NONE else ""


def clusters_of_addresses(addresses: Iterable[str]) -> list[tuple[str, str]]:
    """Namespace and name of the TidbClusters to whose PD the addresses lead, through a Service or a pod."""
    named = [match for address in addresses if (match := _PD_SERVICE.fullmatch(host_of(address)))]
    return [(match["namespace"], match["cluster"]) for match in named]


def pd(ctx: ReconcileContext) -> PDClient:
    """The PD of the cluster: its Service, or the first of its peers that answers (dataplane-apis.md 2).

    The rest of the reconcile uses the PD that this function or `responding_pd_member` has found. Raises BadTlsMaterial;
    NotInCluster if PD belongs to a cluster that does not consent.
    """
    address = _pd_address(ctx)
    return ctx.deps.dataplane.pd(address, _tls(ctx), _admit_pd(ctx))


def _pd_address(ctx: ReconcileContext) -> Address:
    if referenced_cluster(ctx.tc) is not None and (refusal := reference_refusal(ctx)):
        raise NotInCluster(refusal)
    if ctx.pd_url:
        return ctx.pd_url
    announced = [member.client_url for member in ctx.status.pd.peer_members.values()]
    peers = [address for url in announced if (address := reachable_pd_member(ctx, url))]
    if not peers:
        return pd_url(ctx.tc)
    found = ctx.deps.dataplane.answering_pd([pd_url(ctx.tc), *peers], _tls(ctx), _admit_pd(ctx))
    ctx.pd_url = found.base_url
    return ctx.pd_url


def responding_pd_member(ctx: ReconcileContext) -> PDClient | None:
    """A PD member that answers within a second, for when the Service leads to one that does not.

    The rest of the reconcile uses it as PD. Raises BadTlsMaterial.
    """
    members = ctx.status.pd.members.values()
    found = _first_answer(ctx, [partial(_responding_pd, ctx, member) for member in members])
    if found is not None:
        ctx.pd_url = found.base_url
    return found


def _responding_pd(ctx: ReconcileContext, member: PDMember) -> PDClient | None:
    try:
        found = pd_member(ctx, member.client_url)
        # without a leader, a member answers for itself at once, but for PD only after that timeout
        if not found.votes(timeout=_SHORT_TIMEOUT):
            return None
        found.members(timeout=_SHORT_TIMEOUT)
    except BadTlsMaterial:
        raise
    except DataPlaneError:
        return None
    return found


def _first_answer(ctx: ClusterContext, asks: Sequence[Callable[[], _T | None]]) -> _T | None:
    """The first answer of any member: calls the first one alone, and if it has none, the others in parallel."""
    if not asks:
        return None
    first, *others = asks
    if (found := first()) is not None:
        return found
    return next((each for each in ctx.deps.dataplane.side_by_side.run(others) if each is not None), None)


def pd_member_votes(ctx: ReconcileContext, member: PDMember) -> bool:
    """True if a PD member says within a second that it has a leader. Raises DataPlaneError."""
    return pd_member(ctx, member.client_url).votes(timeout=_SHORT_TIMEOUT)


def pd_answers(ctx: ReconcileContext) -> PDReads:
    """PD's answers in this reconcile, shared by all callers: a read is sent once, unless there was a write since.

    Destructive decisions use `pd` instead, which sends every read (`member.evidence`). Raises BadTlsMaterial.
    """
    address = _pd_address(ctx)
    return ctx.deps.dataplane.sharing.pd(address, _tls(ctx), _admit_pd(ctx))


def ask_ahead(ctx: ReconcileContext, reads: Iterable[Callable[[], object]]) -> list[object]:
    """Send reads of `pd_answers` in parallel, so that later callers find the answers, including errors.

    Returns the answers in this order, None for each error.
    """
    return ctx.deps.dataplane.side_by_side.run([partial(_answered, read) for read in reads])


def _answered(read: Callable[[], object]) -> object:
    with contextlib.suppress(DataPlaneError):
        return read()
    return None


def pd_member(ctx: ReconcileContext, announced: str) -> PDClient:
    """The client of one PD member, by its advertised URL. Raises BadTlsMaterial, NotInCluster."""
    admit = _admit_pd(ctx)
    return ctx.deps.dataplane.pd(admit(announced), _tls(ctx), admit)


def reachable_pd_member(ctx: ReconcileContext, announced: str) -> Address | None:
    """The address for an advertised URL of a PD member; None if it does not belong to the cluster."""
    try:
        return _admit_pd(ctx)(announced)
    except NotInCluster:
        return None


def tikv(ctx: ReconcileContext, pod: str) -> TiKVClient:
    """The client of one TiKV. Raises BadTlsMaterial."""
    return ctx.deps.dataplane.tikv(tikv_status_url(ctx.tc, pod), _tls(ctx))


def log_backup(ctx: ReconcileContext, pod: str) -> LogBackupServer:
    """The log backup service of one TiKV. Raises BadTlsMaterial."""
    url = address_book(ctx.tc).member("tikv", ordinal_of(pod), TIKV_SERVER_PORT)
    return ctx.deps.dataplane.log_backup(url, _tls(ctx))


def tiflash(ctx: ReconcileContext, pod: str) -> TiFlashClient:
    """The client of one TiFlash. Raises BadTlsMaterial."""
    return ctx.deps.dataplane.tiflash(tiflash_status_url(ctx.tc, pod), _tls(ctx))


def tidb(ctx: ReconcileContext, pod: str) -> TiDBClient:
    """The client of one TiDB server. Raises BadTlsMaterial."""
    return ctx.deps.dataplane.tidb(tidb_status_url(ctx.tc, pod), _tls(ctx))


def caller(ctx: ClusterContext, component: str, pod: str, port: int, tls: TlsMaterial | None = None) -> Caller:
    """A caller of one port of a pod, from which the client of that API is built.

    `tls`: for a server with certificates other than the cluster's. Raises BadTlsMaterial.
    """
    book = address_book(ctx.tc)
    book = structs.replace(book, tls=True) if tls else book
    return ctx.deps.dataplane.caller(book.member(component, ordinal_of(pod), port), tls or _tls(ctx))


def etcd(ctx: ReconcileContext) -> EtcdClient:
    """The client of PD's etcd. Raises BadTlsMaterial."""
    # `pd` avoids a Service that leads to an unhealthy member
    return ctx.deps.dataplane.etcd(pd(ctx).base_url, _tls(ctx))


def pump_nodes(ctx: ReconcileContext) -> tuple[LivePumpNode, ...]:
    """All Pump nodes that are registered in PD, including foreign ones. Raises DataPlaneError."""
    return read_pump_nodes(etcd(ctx))


def root(ctx: ReconcileContext, pod: str) -> RootClient:
    """The client of TiDB's SQL port as root: of the Service or, without one, of this pod's server.

    With TLS for clients, the CA in the server's own Secret verifies the server. Raises ApiError, TransportError.
    """
    book, spec = address_book(ctx.tc), ctx.tc.spec.tidb
    service = spec.service if spec else None
    host = book.tidb_service_host() if service else book.advertised_host("tidb", ordinal_of(pod))
    port = (service.port if service else None) or TIDB_SERVER_PORT
    return ctx.deps.dataplane.root(SqlLogin(host, port, "root", ca=_server_ca(ctx)))


def _server_ca(ctx: ReconcileContext) -> str:
    tidb = ctx.tc.spec.tidb
    if tidb is None or tidb.tls_client is None or not tidb.tls_client.enabled:
        return ""
    secret = ctx.secret(tidb_server_secret(ctx.tc))
    return secret_data(secret).get("ca.crt", b"").decode()


def pdms_member(ctx: ReconcileContext, service: str, announced: str) -> PDMSClient:
    """The client of one member of a PD microservice, by its advertised URL. Raises BadTlsMaterial, NotInCluster."""
    return ctx.deps.dataplane.pdms(_reach(ctx).admit(service, announced), service, _tls(ctx))


def pump(ctx: ReconcileContext, ordinal: int) -> PumpClient:
    """The client of one Pump. Raises BadTlsMaterial."""
    return ctx.deps.dataplane.pump(address_book(ctx.tc).pump(ordinal), _tls(ctx))


def dm_masters(ctx: DMContext) -> DMMasterClient:
    """The client of a DMCluster's masters: of their Service, or of the one that `responding_dm_master` has found.

    Raises BadTlsMaterial.
    """
    if ctx.responding_master:
        return dm_master(ctx, ctx.responding_master)
    return DMMasterClient(ctx.deps.dataplane.caller(address_book(ctx.tc).dm_masters(), _tls(ctx)))


def responding_dm_master(ctx: DMContext) -> DMMasterClient | None:
    """A master that answers within a second; asks healthy ones first. The Service may lead to one that does not answer.

    The rest of the reconcile uses it. Raises BadTlsMaterial.
    """
    members = ctx.status.master.members
    pods = sorted(members, key=lambda name: not members[name].health)
    found = _first_answer(ctx, [partial(_responding_master, ctx, pod) for pod in pods])
    if found is None:
        return None
    ctx.responding_master, master = found
    return master


def _responding_master(ctx: DMContext, pod: str) -> tuple[str, DMMasterClient] | None:
    found = dm_master(ctx, pod)
    try:
        found.masters(timeout=_SHORT_TIMEOUT)
    except DataPlaneError:
        return None
    return pod, found


def dm_master_votes(ctx: DMContext, pod: str) -> bool:
    """True if a master answers within a second; without a leader it refuses to. Raises DataPlaneError."""
    return bool(dm_master(ctx, pod).masters(timeout=_SHORT_TIMEOUT))


def dm_master(ctx: DMContext, pod: str) -> DMMasterClient:
    """The client of one master. Raises BadTlsMaterial."""
    return DMMasterClient(caller(ctx, "dm-master", pod, DM_MASTER_PORT))


def tls_from_secret(ctx: ClusterContext, name: str, required_by: str) -> TlsMaterial:
    """The certificates in a Secret, read live; `required_by` is the field that requires it. Raises BadTlsMaterial."""
    secret = ctx.secret(name)
    if secret is None:
        raise BadTlsMaterial(
            f"Secret {ctx.namespace}/{name} does not exist; {required_by} requires it, with ca.crt, tls.crt and tls.key"
        )
    try:
        return TlsMaterial.from_secret(secret_data(secret))
    except BadTlsMaterial as error:
        raise BadTlsMaterial(f"Secret {ctx.namespace}/{name}: {error}") from None


def _admit_pd(ctx: ReconcileContext) -> Admit:
    return partial(_reach(ctx).admit, "pd")


def _reach(ctx: ReconcileContext) -> Reach:
    found = reach(ctx.tc, partial(_shares_pd, ctx))
    return replace(found, hosts=frozenset()) if found.hosts and reference_refusal(ctx) else found


def _shares_pd(ctx: ReconcileContext, namespace: str, name: str) -> bool:
    """True if the cached spec of a TidbCluster shows that it shares PD with this one.

    That is the case if one joins the other, both join the same cluster, or both are the same.
    """
    found = ctx.listers.tidb_clusters.get(namespace, name)
    if found is None:
        return False
    reference = (found.decode().get("spec") or {}).get("cluster") or {}
    theirs = (reference.get("namespace") or namespace, reference.get("name")) if reference.get("name") else None
    own = ctx.tc.spec.cluster
    ours = (own.namespace or ctx.namespace, own.name) if own and own.name else (ctx.namespace, ctx.name)
    return ours in ((namespace, name), theirs)


def _tls(ctx: ClusterContext) -> TlsMaterial | None:
    if tls_enabled(ctx.tc) and ctx.tls is None:
        ctx.tls = tls_from_secret(ctx, cluster_client_secret(ctx.tc), "spec.tlsCluster.enabled")
    return ctx.tls
