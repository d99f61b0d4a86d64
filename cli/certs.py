"""`tidb-operator certs`: a CA, and the certificate Secrets that clusters need (objects.md 9.1).

The program `openssl` creates them, because no dependency of this project can sign certificates. For long-lived
clusters, cert-manager renews certificates automatically; see docs/tls.md.
"""

import argparse
import base64
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from apis.cluster import Cluster
from apis.cluster_kinds import CLUSTER_MODELS
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from cli.failures import Failure
from cli.manifests import Manifest
from dataplane.certificates import CA, CERTIFICATE, KEY
from kube.objects import Json
from kube.resources import TIDB_CLUSTERS
from meta.certificate_needs import Need, all_hosts, needs

DAYS = 365
_DAYS_OF_CA = 3650
_MOST_DAYS = 36500
_SECONDS_A_DAY = 86400
_NAME = "TiDB"
"""The common name of all certificates: PD, TiKV and TiDB can require a single name."""

_CA_FILES = (CA, "ca.key")


class Authority:
    """A CA in a directory; created if it does not exist."""

    def __init__(self, directory: Path, days: int) -> None:
        """A CA for certificates that are valid for `days`. Raises Failure if `openssl` is missing, half of the CA is,
        or the CA expires earlier.
        """
        self._ca, self._key = (directory / name for name in _CA_FILES)
        there = [path for path in (self._ca, self._key) if path.exists()]
        if len(there) == 1:
            missing = next(path for path in (self._ca, self._key) if path not in there)
            raise Failure(f"{there[0]} is there, but {missing} is not; put it there, or name another directory")
        if not there:
            directory.mkdir(parents=True, exist_ok=True)
            subject = ["-subj", "/CN=TiDB CA", "-days", str(max(_DAYS_OF_CA, days + 1))]
            _openssl("req", "-x509", *_new_key(self._key), *subject, "-out", str(self._ca))
        elif not _lasts(self._ca, days):
            raise Failure(f"{self._ca} ends in less than {days} days; give fewer --days, or another CA")
        self._days = days

    def secret(self, tc: Cluster, need: Need) -> Json:
        """A Secret that a cluster needs. Raises Failure."""
        with tempfile.TemporaryDirectory(prefix="tidb-certs-") as place:
            key, request, cert, extensions = (Path(place) / name for name in ("key", "csr", "crt", "ext"))
            extensions.write_text(_extensions(all_hosts(tc, need)), "utf-8")
            _openssl("req", *_new_key(key), "-subj", f"/CN={_NAME}", "-out", str(request))
            signed = ["-CA", str(self._ca), "-CAkey", str(self._key), "-set_serial", f"0x{_serial()}"]
            made = ["-in", str(request), "-out", str(cert), "-extfile", str(extensions), "-days", str(self._days)]
            _openssl("x509", "-req", *made, *signed)
            parts = {CA: self._ca, CERTIFICATE: cert, KEY: key}
            data = {name: base64.b64encode(path.read_bytes()).decode() for name, path in parts.items()}
        metadata = {"name": need.secret, "namespace": tc.metadata.namespace or "default"}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def secrets(documents: Sequence[Manifest], directory: Path, days: int = DAYS) -> Iterator[Json]:
    """The missing Secrets of all clusters in the documents, from the CA in a directory.

    Raises Failure.
    """
    given = {(each.namespace, each.name) for each in documents if each.kind == "Secret"}
    authority: Authority | None = None
    for document in documents:
        model = CLUSTER_MODELS.get(document.kind)
        if model is None or document.body["apiVersion"] != TIDB_CLUSTERS.api_version:
            continue
        try:
            tc = with_defaults(decode(document.body, model))
        except InvalidField as error:
            raise Failure("\n".join(f"{document.source}: {problem}" for problem in error.problems)) from None
        for name, need in needs(tc).items():
            if (document.namespace, name) not in given:
                authority = authority or Authority(directory, days)
                yield authority.secret(tc, need)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options `ca` and `days`."""
    where = "where ca.crt and ca.key are, or are created (default ca)"
    parser.add_argument("--ca", type=Path, default=Path("ca"), metavar="DIR", help=where)
    how_long = "how many days the certificates are valid (default %(default)s)"
    parser.add_argument("--days", type=_days, default=DAYS, help=how_long)


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_DAYS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days from 1 to {_MOST_DAYS}")
    return int(text)


def run(documents: Sequence[Manifest], directory: Path, days: int) -> int:
    """Print the Secrets and return the exit code. Raises Failure."""
    made = list(secrets(documents, directory, days))
    if not made:
        raise Failure("no cluster lacks a Secret for TLS; set spec.tlsCluster.enabled or spec.tidb.tlsClient.enabled")
    yaml.safe_dump_all(made, sys.stdout, sort_keys=False)
    return 0


def _extensions(hosts: tuple[str, ...]) -> str:
    names = ",".join(f"{'IP' if _is_address(host) else 'DNS'}:{host}" for host in hosts)
    return f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\nbasicConstraints=CA:FALSE\n"


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


def _serial() -> str:
    return _openssl("rand", "-hex", "16").strip()


def _new_key(path: Path) -> list[str]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(path)]


def _openssl(*arguments: str) -> str:
    done = _run(*arguments)
    if done.returncode:
        raise Failure(f"openssl {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def _lasts(certificate: Path, days: int) -> bool:
    done = _run("x509", "-in", str(certificate), "-noout", "-checkend", str(days * _SECONDS_A_DAY))
    if done.stderr:
        raise Failure(f"{certificate} is of no use: {done.stderr.strip()}")
    return done.returncode == 0


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("openssl")
    if program is None:
        raise Failure("openssl is not in PATH; install it, or have cert-manager make the Secrets (docs/tls.md)")
    # all arguments come from this program
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)  # noqa: S603
