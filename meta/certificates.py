"""The stage `certificates`: the Secrets that pods mount and the operator reads are there and good (objects.md 9.1).

Servers that do not trust each other say so in a hundred ways, and none of them names a Secret. So the Secrets are
looked at themselves: live, now and then, and nothing of their content is kept.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from apis.components import component_types
from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from apis.times import stamp
from dataplane.certificates import CA, CERTIFICATE, KEY, BadCertificate, Role, authority_of, check_trust, read
from kube.events import WARNING
from kube.objects import condition_of
from kube.resources import SECRETS
from member.components import workload, workload_names
from member.context import ReconcileContext
from member.memory.certificate_book import Finding
from member.naming import address_book, cluster_client_secret, cluster_secret, discovery_mtls, tidb_server_secret
from member.outcome import Done, Outcome, Refused

CERTIFICATES_VALID = "CertificatesValid"
"""The type of the condition."""

VALID = "Valid"
BAD = "BadCertificate"

WARNINGS: Mapping[str, timedelta] = {
    f"ExpiresWithin{days}Day{'s' * (days > 1)}": timedelta(days=days) for days in (1, 7, 30)
}
"""How long before its end a certificate is spoken of: reasons, the most urgent first."""

_ONE_AUTHORITY = f"sign both with one authority, or put both into {CA} of both"

_MOST = 3
"""Secrets that one sentence names."""


@dataclass(frozen=True, slots=True)
class _Need:
    """A Secret and what it must be good for.

    `hosts` are names that others know its server by. `internal`: it is between the components, which all trust one
    another; what SQL clients trust is their own affair. `has_ca`: somebody reads its `ca.crt`.
    """

    secret: str
    role: Role = Role.SERVER
    hosts: tuple[str, ...] = ()
    internal: bool = True
    has_ca: bool = True


def act(ctx: ReconcileContext) -> Outcome:
    """Name Secrets that are missing, or of no use, or about to expire. Raises ApiError, TransportError."""
    needs = {each.secret: each for each in _needs(ctx.tc)}
    book, cluster, now = ctx.deps.certificates, ctx.owner.key, ctx.deps.clock.now()
    if not needs:
        book.forget(cluster)
        return Done()
    is_bad = not all(holds for holds, _, _ in condition(ctx).values())
    if book.is_due(cluster, frozenset(needs), now, book.LOOK_AGAIN_AT_TROUBLE if is_bad else book.LOOK_AGAIN):
        book.note(cluster, _look(ctx, needs), now)
    _, reason, message = condition(ctx)[CERTIFICATES_VALID]
    if reason in WARNINGS and _stored_reason(ctx) != reason and book.is_news(cluster, reason):
        ctx.deps.recorder.event(ctx.owner, WARNING, reason, message)
    return Refused("BadCertificate", message, book.LOOK_AGAIN_AT_TROUBLE) if reason == BAD else Done()


def condition(ctx: ReconcileContext) -> Mapping[str, tuple[bool, str, str]]:
    """Whether the certificates of a cluster hold, as a condition by its type; empty where it never had any."""
    findings = ctx.deps.certificates.findings(ctx.owner.key)
    if not findings:
        unused = (True, "NotUsed", "no certificates are used")
        return {CERTIFICATES_VALID: unused} if _stored_reason(ctx) and not list(_needs(ctx.tc)) else {}
    return {CERTIFICATES_VALID: _judged(ctx.namespace, findings, ctx.deps.clock.wall())}


def _judged(namespace: str, findings: Mapping[str, Finding], now: datetime) -> tuple[bool, str, str]:
    wrong = [said for name, each in findings.items() if (said := _trouble(f"Secret {namespace}/{name}", each, now))]
    if wrong:
        return False, BAD, _listed(wrong)
    known = ((each.ends, f"Secret {namespace}/{name}, key {each.key}") for name, each in findings.items() if each.ends)
    ends = sorted(known)
    for reason, before in WARNINGS.items():
        if soon := [f"{what}, expires on {stamp(end)}" for end, what in ends if end - now <= before]:
            return True, reason, f"{_listed(soon)}; renew what expires"
    end, what = ends[0]
    return True, VALID, f"the first to expire is {what}, on {stamp(end)}"


def _trouble(secret: str, finding: Finding, now: datetime) -> str:
    """What is wrong with a Secret now, as a sentence; empty when nothing is."""
    if finding.trouble:
        return f"{secret}{finding.trouble}"
    if finding.ends and now > finding.ends:
        return f"{secret}, key {finding.key}: expired on {stamp(finding.ends)}; renew it"
    if finding.begins and now < finding.begins:
        return f"{secret}, key {CERTIFICATE}: not valid before {stamp(finding.begins)}; issue one that holds now"
    return ""


def _listed(sentences: list[str]) -> str:
    more = len(sentences) - _MOST
    return "; ".join(sentences[:_MOST]) + (f"; and {more} more" if more > 0 else "")


def _stored_reason(ctx: ReconcileContext) -> str:
    stored = (ctx.owner.decode().get("status") or {}).get("conditions") or []
    return str(condition_of(stored, CERTIFICATES_VALID).get("reason") or "")


# what is needed


def _needs(tc: TidbCluster) -> Iterator[_Need]:
    """The Secrets of a cluster's own clients, of Discovery, and those that the pods of components mount."""
    if tls_enabled(tc):
        yield _Need(cluster_client_secret(tc), Role.CLIENT)
    if discovery_mtls(tc):
        yield _Need(cluster_secret(tc, "discovery"), hosts=(f"{tc.metadata.name}-discovery.{tc.metadata.namespace}",))
    for name in workload_names():
        if name in {each.name for each in component_types() if each.section(tc.spec)}:
            yield from _mounted(tc, name)


def _mounted(tc: TidbCluster, component: str) -> Iterator[_Need]:
    """What the pods of a component mount, by the names that the volumes have (objects.md 9.1)."""
    pod = workload(component).stateful_set(tc, "")["spec"]["template"]["spec"]
    secrets = {each["name"]: each["secret"]["secretName"] for each in pod.get("volumes") or () if "secret" in each}
    own = {each.certificate_volume for each in component_types()}
    for volume, secret in secrets.items():
        if volume in own:
            yield _Need(secret, hosts=_hosts(tc, component))
        elif volume == "cluster-client-tls":
            yield _Need(secret, Role.CLIENT)
        elif volume == "tidb-server-tls":
            yield _Need(secret, internal=False, has_ca=secret != tidb_server_secret(tc) or _demands_clients(tc))
        elif volume == "tidb-client-tls":
            yield _Need(secret, Role.CLIENT, internal=False, has_ca=not _skips_ca(tc))


def _hosts(tc: TidbCluster, component: str) -> tuple[str, ...]:
    """The names by which other components know a pod, and by which the operator dials PD."""
    pod = address_book(tc).advertised_host(component, 0)
    return (pod, address_book(tc).pd_host) if component == "pd" else (pod,)


def _demands_clients(tc: TidbCluster) -> bool:
    client = tc.spec.tidb.tls_client if tc.spec.tidb else None
    return client is not None and not client.disable_client_authn


def _skips_ca(tc: TidbCluster) -> bool:
    client = tc.spec.tidb.tls_client if tc.spec.tidb else None
    return client is not None and client.skip_internal_client_ca


# what is there


def _look(ctx: ReconcileContext, needs: Mapping[str, _Need]) -> Mapping[str, Finding]:
    """Read all Secrets, and try them out, each with the operator's own."""
    found = {name: _read_secret(ctx, name) for name in needs}
    client = cluster_client_secret(ctx.tc)
    usable = found.get(client) or {}
    partner = usable if needs.keys() & {client} and usable.keys() >= {CA, CERTIFICATE, KEY} else {}
    return {
        name: _inspect(need, found[name], partner if need.internal and name != client else {}, client)
        for name, need in needs.items()
    }


def _read_secret(ctx: ReconcileContext, name: str) -> Mapping[str, bytes] | None:
    secret = ctx.deps.client.find(SECRETS, name, ctx.namespace)
    if secret is None:
        return None
    data: Mapping[str, str] = secret.decode().get("data") or {}
    return {key: base64.b64decode(value) for key, value in data.items() if value}


def _inspect(need: _Need, data: Mapping[str, bytes] | None, partner: Mapping[str, bytes], client: str) -> Finding:
    keys = (CA, CERTIFICATE, KEY) if need.has_ca else (CERTIFICATE, KEY)
    if data is None:
        return Finding(f" does not exist; create it with {', '.join(keys)}")
    if missing := [key for key in keys if key not in data]:
        return Finding(f", key {missing[0]}: missing; add it")
    try:
        return _tried_out(need, data, partner, client)
    except BadCertificate as error:
        return Finding(f", key {error.key}: {error.message}; {error.way_out}")


def _tried_out(need: _Need, data: Mapping[str, bytes], partner: Mapping[str, bytes], client: str) -> Finding:
    """Raises BadCertificate."""
    cert, key = data[CERTIFICATE], data[KEY]
    certificate = read(cert, key, need.role)
    if need.internal:
        check_trust(cert, key, need.role, data[CA])
    if strange := [host for host in need.hosts if not certificate.covers(host)]:
        raise BadCertificate(CERTIFICATE, f"does not hold for {strange[0]}", "issue it for this name, too")
    if partner:
        _check_partner(need, data, partner, client)
    authority = authority_of(data[CA], certificate) if need.has_ca else None
    if authority is not None and authority.ends < certificate.ends:
        return Finding("", certificate.begins, authority.ends, CA)
    return Finding("", certificate.begins, certificate.ends, CERTIFICATE)


def _check_partner(need: _Need, data: Mapping[str, bytes], partner: Mapping[str, bytes], client: str) -> None:
    """Each must trust the other's authority. Raises BadCertificate."""
    try:
        check_trust(data[CERTIFICATE], data[KEY], need.role, partner[CA])
    except BadCertificate:
        what = f"signed by an authority that {CA} of Secret {client} does not hold"
        raise BadCertificate(CERTIFICATE, what, _ONE_AUTHORITY) from None
    try:
        check_trust(partner[CERTIFICATE], partner[KEY], Role.CLIENT, data[CA])
    except BadCertificate:
        what = f"lacks the authority that has signed {CERTIFICATE} of Secret {client}"
        raise BadCertificate(CA, what, _ONE_AUTHORITY) from None
