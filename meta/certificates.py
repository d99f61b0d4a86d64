"""The stage `certificates`: checks that the Secrets that pods mount and the operator reads exist and work (objects.md
9.1).

Servers that distrust each other report it in a hundred ways, none of which names a Secret. The operator therefore reads
the Secrets themselves, live, after each change and every five minutes, and keeps none of their content.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apis.cluster import Cluster
from apis.times import stamp
from dataplane.certificates import CA, CERTIFICATE, KEY, BadCertificate, Role, authority_of, check_trust, read
from kube.actions import Emit
from kube.events import WARNING
from kube.objects import secret_data, stored_condition
from member.components import workload_names
from member.context import ClusterContext
from member.memory import Finding
from member.naming import cluster_client_secret
from member.objects.volumes import secret_mounts
from member.outcome import Done, Outcome, Refused
from meta.certificate_needs import Need, dialled_hosts, needs

Data = Mapping[str, bytes]
"""The data of a Secret."""

CERTIFICATES_VALID = "CertificatesValid"
"""The type of the condition."""

VALID = "Valid"
BAD = "BadCertificate"

WARNINGS: Mapping[str, timedelta] = {
    f"ExpiresWithin{days}Day{'s' * (days > 1)}": timedelta(days=days) for days in (1, 7, 30)
}
"""How long before its expiry a certificate is reported, with the reasons, most urgent first."""

SOON = max(WARNINGS.values())
"""How long before its expiry a certificate is first reported."""

_END = timedelta()

_PAST = 1.0
"""Seconds after a moment in whole seconds at which it has certainly passed."""

_BEFORE_LONG = 3600.0
"""The maximum number of seconds for which this stage schedules a reconcile; a later expiry is noticed by other
reconciles.
"""

_ONE_AUTHORITY = f"sign both with one authority, or put both into {CA} of both"

_MOST = 3
"""The maximum number of Secrets named in one sentence."""


async def act(ctx: ClusterContext) -> Outcome:
    """Report Secrets that are missing, unusable or about to expire. Raises ApiError, TransportError."""
    wanted = needs(ctx.tc)
    book, cluster = ctx.deps.certificates, ctx.owner.key
    if not wanted:
        book.forget(cluster)
        return Done()
    now = ctx.deps.clock.now()
    is_bad = not all(holds for holds, _, _ in condition(ctx).values())
    every = book.LOOK_AGAIN_AT_TROUBLE if is_bad else book.LOOK_AGAIN
    # taken before the reads: a change during them triggers another check
    changes = ctx.deps.secrets.changes(ctx.reader)
    if book.is_due(cluster, frozenset(wanted), now, every, changes=changes):
        book.note(cluster, _look(ctx, wanted), now, changes=changes)
    _, reason, message = condition(ctx)[CERTIFICATES_VALID]
    if reason in WARNINGS and _stored_reason(ctx) != reason and book.is_news(cluster, reason):
        await Emit(ctx.owner, WARNING, reason, message)
    if reason == BAD:
        ctx.missing_certificates = _missing(ctx, wanted)
        return Refused("BadCertificate", message, book.LOOK_AGAIN_AT_TROUBLE)
    return Done(retry_after=_until_next_word(book.findings(cluster), ctx.deps.clock.wall()))


def _missing(ctx: ClusterContext, wanted: Mapping[str, Need]) -> str:
    """The unusable Secrets, if pods that run now are to mount other Secrets than before; otherwise empty.

    Pods that do not run yet may need those Secrets as well, because components with and without TLS cannot talk to each
    other.
    """
    mounted = {
        name: secret_mounts(live.decode()) for name in workload_names(ctx.tc.kind) if (live := ctx.stateful_set(name))
    }
    if not any(name not in mounted.get(by, {name}) for name, need in wanted.items() for by in need.mounted_by):
        return ""
    already, now = frozenset[str]().union(*mounted.values()), ctx.deps.clock.wall()
    findings = ctx.deps.certificates.findings(ctx.owner.key)
    return _listed(_troubles(ctx.namespace, {name: findings[name] for name in wanted if name not in already}, now))


def _until_next_word(findings: Mapping[str, Finding], now: datetime) -> float | None:
    """Seconds until a certificate expires or its expiry is first reported, if that is soon; else None."""
    moments = (
        finding.ends - before for finding in findings.values() if finding.ends for before in (*WARNINGS.values(), _END)
    )
    left = [(moment - now).total_seconds() + _PAST for moment in moments if moment >= now]
    return min((each for each in left if each < _BEFORE_LONG), default=None)


def condition(ctx: ClusterContext) -> Mapping[str, tuple[bool, str, str]]:
    """The condition about a cluster's certificates by its type; empty if the cluster never had any."""
    findings = ctx.deps.certificates.findings(ctx.owner.key)
    if not findings:
        unused = (True, "NotUsed", "no certificates are used")
        return {CERTIFICATES_VALID: unused} if _stored_reason(ctx) and not needs(ctx.tc) else {}
    return {CERTIFICATES_VALID: judged(ctx.namespace, findings, ctx.deps.clock.wall())}


def judged(namespace: str, findings: Mapping[str, Finding], now: datetime) -> tuple[bool, str, str]:
    """Status, reason and message about the Secrets of a cluster, of which there is at least one."""
    if wrong := _troubles(namespace, findings, now):
        return False, BAD, _listed(wrong)
    known = ((each.ends, f"Secret {namespace}/{name}, key {each.key}") for name, each in findings.items() if each.ends)
    ends = sorted(known)
    for reason, before in WARNINGS.items():
        if soon := [f"{what}, expires on {stamp(end)}" for end, what in ends if end - now <= before]:
            return True, reason, f"{_listed(soon)}; renew what expires"
    end, what = ends[0]
    return True, VALID, f"the first to expire is {what}, on {stamp(end)}"


def _troubles(namespace: str, findings: Mapping[str, Finding], now: datetime) -> list[str]:
    troubles = ((name, trouble_of(each, now)) for name, each in findings.items())
    return [f"Secret {namespace}/{name}{trouble}" for name, trouble in troubles if trouble]


def trouble_of(finding: Finding, now: datetime) -> str:
    """What is wrong with a Secret: the rest of a sentence that begins with its name; empty if nothing is."""
    if finding.trouble:
        return finding.trouble
    if finding.ends and now > finding.ends:
        return f", key {finding.key}: expired on {stamp(finding.ends)}; renew it"
    if finding.begins and now < finding.begins:
        return f", key {CERTIFICATE}: not valid before {stamp(finding.begins)}; issue one that holds now"
    return ""


def _listed(sentences: list[str]) -> str:
    more = len(sentences) - _MOST
    return "; ".join(sentences[:_MOST]) + (f"; and {more} more" if more > 0 else "")


def _stored_reason(ctx: ClusterContext) -> str:
    stored = stored_condition(ctx.owner, CERTIFICATES_VALID)
    return (stored and stored.reason) or ""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A Secret's data with the inputs of its test: host names, and the client Secret of the operator."""

    need: Need
    data: Data = field(repr=False)
    hosts: tuple[str, ...]
    client: str
    of_client: Data | None = field(repr=False)


def _look(ctx: ClusterContext, wanted: Mapping[str, Need]) -> Mapping[str, Finding]:
    return inspect(ctx.tc, wanted, {name: _read_secret(ctx, name) for name in wanted})


def inspect(tc: Cluster, wanted: Mapping[str, Need], found: Mapping[str, Data | None]) -> Mapping[str, Finding]:
    """Test the data of Secrets by name, together with the operator's client Secret; None means that the Secret is
    missing.
    """
    client = cluster_client_secret(tc)
    findings: dict[str, Finding] = {}
    for name in sorted(wanted, key=lambda each: each != client):
        # an unusable client certificate proves nothing about the other Secrets
        of_client = found.get(client) if client in findings and not findings[client].trouble else None
        trial = _Trial(wanted[name], found[name] or {}, dialled_hosts(tc, wanted[name]), client, of_client)
        findings[name] = _inspect(found[name], trial)
    return findings


def _read_secret(ctx: ClusterContext, name: str) -> Data | None:
    secret = ctx.secret(name)
    return None if secret is None else secret_data(secret)


def _inspect(data: Data | None, trial: _Trial) -> Finding:
    keys = (CA, CERTIFICATE, KEY) if trial.need.has_ca else (CERTIFICATE, KEY)
    if data is None:
        return Finding(f" does not exist; create it with {', '.join(keys)}")
    if missing := [key for key in keys if key not in data]:
        return Finding(f", key {missing[0]}: missing; add it")
    try:
        return _tried_out(trial)
    except BadCertificate as error:
        return Finding(f", key {error.key}: {error.message}; {error.way_out}")


def _tried_out(trial: _Trial) -> Finding:
    """Raises BadCertificate."""
    need, data = trial.need, trial.data
    cert, key = data[CERTIFICATE], data[KEY]
    certificate = read(cert, key, need.role)
    if need.internal:
        check_trust(cert, key, need.role, data[CA])
    if strange := [host for host in trial.hosts if not certificate.covers(host)]:
        raise BadCertificate(CERTIFICATE, f"does not hold for {strange[0]}", "issue it for this name, too")
    if need.internal and trial.of_client is not None:
        _check_partner(data, trial.of_client, trial)
    authority = authority_of(data[CA], certificate) if need.has_ca else None
    if authority is not None and authority.ends < certificate.ends:
        return Finding("", certificate.begins, authority.ends, CA)
    return Finding("", certificate.begins, certificate.ends, CERTIFICATE)


def _check_partner(mine: Data, other: Data, trial: _Trial) -> None:
    """Check that the two certificates trust each other's authority. Raises BadCertificate."""
    try:
        check_trust(mine[CERTIFICATE], mine[KEY], trial.need.role, other[CA])
    except BadCertificate:
        what = f"signed by an authority that {CA} of Secret {trial.client} does not hold"
        raise BadCertificate(CERTIFICATE, what, _ONE_AUTHORITY) from None
    try:
        check_trust(other[CERTIFICATE], other[KEY], Role.CLIENT, mine[CA])
    except BadCertificate:
        what = f"lacks the authority that has signed {CERTIFICATE} of Secret {trial.client}"
        raise BadCertificate(CA, what, _ONE_AUTHORITY) from None
