"""`kubectl tidb certs`: the certificates that a cluster needs, and their expiry; with `-f` it creates some."""

import argparse
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from rich.text import Text

from apis.times import stamp
from cli import certs
from cli.failures import FAILED, Failure
from cli.manifests import read as read_manifest
from cli.tidb.ages import length
from cli.tidb.clusters import Found, find_cluster
from cli.tidb.command import Command
from cli.tidb.output import BAD, GOOD, UNDER_WAY, Columns, Page
from cli.tidb.session import Session
from dataplane.certificates import CA, CERTIFICATE, KEY, BadCertificate, authority_of, read
from kube.client import Client
from kube.objects import secret_data
from kube.resources import SECRETS
from meta.certificate_needs import Need, needs

_SOON = timedelta(days=30)


class Certificate(msgspec.Struct, rename="camel"):
    """A Secret that a cluster needs. `expires` is the certificate's expiry, or the authority's if that is earlier.

    `used_by` are the components that present it as servers, empty if clients present it. `problem` is empty if it is
    valid.
    """

    secret: str
    used_by: list[str]
    expires: str
    names: list[str]
    problem: str


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", nargs="?", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME")
    parser.add_argument("-f", "--filename", type=Path, metavar="FILE", help="print the Secrets that its clusters lack")
    certs.add_arguments(parser)


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    if bool(given.cluster) == bool(given.filename):
        raise Failure("name a CLUSTER to see its certificates, or a manifest with -f to have some made")
    if given.filename:
        return certs.run(read_manifest(given.filename), given.ca, given.days)
    found = find_cluster(session.client, session.namespace, given.cluster)
    now = session.clock.wall()
    certificates = [_look(session.client, found, need, now) for need in needs(found.cluster).values()]
    document = found.identity | {"certificates": msgspec.to_builtins(certificates)}
    session.output.show(document, lambda: _page(found, certificates, now))
    return FAILED if any(certificate.problem for certificate in certificates) else 0


def _look(client: Client, found: Found, need: Need, now: datetime) -> Certificate:
    """The state of a Secret. Raises ApiError, TransportError."""
    secret = client.find(SECRETS, need.secret, found.object.metadata.namespace)
    result = Certificate(need.secret, list(need.components), "", [], "")
    if secret is None:
        return msgspec.structs.replace(result, problem="the Secret does not exist")
    data = secret_data(secret)
    if missing := [key for key in (CA, CERTIFICATE, KEY) if key not in data and (key != CA or need.has_ca)]:
        return msgspec.structs.replace(result, problem=f"it has no key {', '.join(missing)}")
    try:
        shown = read(data[CERTIFICATE], data[KEY], need.role)
        authority = authority_of(data[CA], shown) if need.has_ca else None
    except BadCertificate as error:
        return msgspec.structs.replace(result, problem=str(error))
    ends = min(shown.ends, authority.ends) if authority else shown.ends
    problem = "expired" if ends < now else "not valid yet" if shown.begins > now else ""
    return msgspec.structs.replace(result, expires=stamp(ends), names=list(shown.names), problem=problem)


def _page(found: Found, known: Sequence[Certificate], now: datetime) -> Page:
    if not known:
        return [f"{found.name} uses no certificates: set spec.tlsCluster.enabled or spec.tidb.tlsClient.enabled"]
    table = Columns("SECRET", "SHOWN BY", "EXPIRES", "STATE")
    for certificate in known:
        table.add(
            certificate.secret,
            ", ".join(certificate.used_by) or "clients",
            certificate.expires,
            _state(certificate, now),
        )
    return [table]


def _state(certificate: Certificate, now: datetime) -> Text:
    if certificate.problem:
        return Text(certificate.problem, BAD)
    left = datetime.fromisoformat(certificate.expires) - now
    return Text(f"holds for {length(left)}", UNDER_WAY if left < _SOON else GOOD)


CERTS = Command(
    _run,
    _add_arguments,
    details="Exit code 1 when one is missing, or of no use. With -f as `tidb-operator certs`: some are made.",
)
