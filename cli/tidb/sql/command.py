"""`kubectl tidb sql`: run an installed SQL client in front of a Ready TiDB pod."""

import argparse
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

from apis.accessor import Component, find
from apis.components import component_type
from apis.tidbcluster import TidbCluster
from cli.failures import Failure
from cli.tidb.clusters import Found, find_cluster
from cli.tidb.command import Command
from cli.tidb.connection import connection_flags
from cli.tidb.output import FORMATS
from cli.tidb.pods import ClusterPod, list_pods
from cli.tidb.session import Session
from cli.tidb.sql.clients import CLIENTS, Client, Login, find_client, write_private
from cli.tidb.sql.tunnel import tunnel
from dataplane.certificates import CA, CERTIFICATE, KEY
from kube.objects import secret_data
from kube.resources import SECRETS

_TIDB = "tidb"
_KEY = "password"
"""The key of the password in a Secret of backups and restores; a Secret of an initializer has a key for each user."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_OF_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_BY_SIGNAL = 128
"""Added to the number of the signal that ended a client, as shells do."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"{parser.prog} CLUSTER [flags] [-- OPTION ...]"
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME, or tc/NAME")
    parser.add_argument("-u", "--user", default="root", metavar="USER", help="default: root")
    parser.add_argument("-e", "--execute", metavar="STATEMENT", help="run this, print its result, and end")
    password = parser.add_mutually_exclusive_group()
    stored = "a Secret with the password, under the key USER or `password` (default: the client asks for it)"
    password.add_argument("--password-from-secret", metavar="NAME", help=stored)
    password.add_argument("--no-password", action="store_true", help="the user has none: do not ask")
    certificate = "the Secret for a cluster with TLS (default: CLUSTER-tidb-client-secret)"
    parser.add_argument("--tls-secret", metavar="NAME", help=certificate)
    parser.add_argument("--pod", default="", metavar="POD", help="a TiDB pod (default: the first that is Ready)")
    parser.add_argument("--client", default="", choices=CLIENTS, help="default: the first on PATH")


def _run(session: Session, given: argparse.Namespace, others: Sequence[str]) -> int:
    found = find_cluster(session.client, session.namespace, given.cluster)
    pod = _chosen(found, list_pods(session.client, found.cluster), given.pod)
    target = [*connection_flags(given), f"--namespace={pod.object.metadata.namespace}", f"pod/{pod.name}"]
    port = component_type(_TIDB).ports["server"]
    client = find_client(given.client, shlex.join(["kubectl", "port-forward", *target, str(port)]))
    login = Login(given.user, _password(session, found, given), _tls(session, found, given.tls_secret))
    statement = [] if given.execute is None else [f"--execute={given.execute}"]
    with _ended_by_signals(), tempfile.TemporaryDirectory(prefix="tidb-sql-") as directory:
        place = Path(directory)
        secrets, content = place / "options", client.secrets(login).encode()
        # a client has read its password when it connects
        with tunnel(target, port, place, partial(secrets.unlink, missing_ok=True)) as way:
            write_private(secrets, content)
            command = [*client.command(login, secrets, way.port, place), *statement, *others]
            code = _wait_for(client, command, place)
            if code and way.failure:
                raise Failure(f"the connection to pod {pod.name} is lost: {way.failure}")
    return code


def _chosen(found: Found, pods: Sequence[ClusterPod], name: str) -> ClusterPod:
    """The pod of that name, or the first Ready one of TiDB, which a roll restarts last. Raises Failure."""
    component = _servers(found)
    servers = [pod for pod in pods if pod.component == _TIDB]
    if name and name not in [server.name for server in servers]:
        known = ", ".join(server.name for server in servers)
        raise Failure(f"{found.name} has no TiDB pod {name}; it has {known or 'none at all'}")
    asked = [server for server in servers if name in ("", server.name)]
    ready = [pod for pod in asked if pod.pod.is_ready and not pod.is_going]
    if ready:
        return ready[0]
    if component.suspended:
        raise Failure(f"{found.name} hibernates and has no TiDB; `kubectl tidb wake {found.text}` starts its pods")
    if not asked:
        raise Failure(f"{found.name} has no TiDB pod{_why_none(found, component)}")
    states = ", ".join(f"{pod.name} is {pod.state}" for pod in asked)
    raise Failure(f"no TiDB pod of {found.name} is Ready: {states}; {_ask_doctor(found)}")


def _servers(found: Found) -> Component:
    """TiDB of a cluster. Raises Failure."""
    if not isinstance(found.cluster, TidbCluster):
        raise Failure(f"{found.name} has no TiDB: it migrates data; name the TidbCluster that receives them")
    component = find(found.cluster, _TIDB)
    if component is None:
        other = found.cluster.spec.cluster
        joined = (
            f"; it joins TidbCluster {other.namespace or found.cluster.metadata.namespace}/{other.name}"
            if other
            else ""
        )
        raise Failure(f"{found.name} has no TiDB: its spec.tidb is not set{joined}")
    return component


def _why_none(found: Found, component: Component) -> str:
    return f"; {_ask_doctor(found)}" if component.workload.replicas else ": its spec.tidb.replicas is 0"


def _ask_doctor(found: Found) -> str:
    return f"`kubectl tidb doctor {found.text}` says why"


def _password(session: Session, found: Found, given: argparse.Namespace) -> str | None:
    """The user's password; None if the client asks for it. Raises Failure, ApiError, TransportError."""
    if given.no_password:
        return ""
    if given.password_from_secret is None:
        return None
    name = given.password_from_secret
    data = _secret(session, found, name, "with the password", keeps_empty=True)
    key = next((each for each in (given.user, _KEY) if each in data), None)
    if key is None:
        has = ", ".join(sorted(data)) or "none at all"
        raise Failure(f"Secret {name} has neither the key {given.user} nor {_KEY}; it has {has}")
    try:
        password = data[key].decode()
    except UnicodeDecodeError:
        raise Failure(f"Secret {name} has no text under the key {key}") from None
    if "\0" in password:
        raise Failure(f"Secret {name} has a NUL under the key {key}, which no option file can carry")
    return password


def _tls(session: Session, found: Found, name: str | None) -> Mapping[str, bytes] | None:
    """The certificates with which a client connects; None without TLS. Raises Failure, ApiError, TransportError."""
    spec = found.cluster.spec.tidb if isinstance(found.cluster, TidbCluster) else None
    if spec is None or spec.tls_client is None or not spec.tls_client.enabled:
        if name is not None:
            raise Failure(f"{found.name} offers no TLS: set its spec.tidb.tlsClient.enabled, or omit --tls-secret")
        return None
    secret = name or f"{found.cluster.metadata.name}-tidb-client-secret"
    try:
        data = _secret(session, found, secret, "with the client's certificate")
    except Failure:
        # no client needs a certificate then, and the tunnel leads to the right server
        if name is None and spec.tls_client.disable_client_authn:
            return {}
        raise
    data = {key: data[key] for key in (CA, CERTIFICATE, KEY) if key in data}
    if (CERTIFICATE in data) is not (KEY in data):
        raise Failure(f"Secret {secret} has only one of the keys {CERTIFICATE} and {KEY}")
    return data


def _secret(session: Session, found: Found, name: str, what: str, *, keeps_empty: bool = False) -> Mapping[str, bytes]:
    """The data of a Secret in the cluster's namespace. Raises Failure, ApiError, TransportError."""
    namespace = found.object.metadata.namespace
    secret = session.client.find(SECRETS, name, namespace)
    if secret is None:
        raise Failure(f"no Secret {name} {what} in namespace {namespace}")
    return secret_data(secret, keeps_empty=keeps_empty)


def _wait_for(client: Client, command: Sequence[str], place: Path) -> int:
    """Run a client at this terminal to its end; its exit code."""
    # MySQL's own store of passwords would override the options
    environ = {**os.environ, "MYSQL_TEST_LOGIN_FILE": str(place / "none")}
    environ.pop("MYSQL_PWD", None)
    with _left_to_the_client():
        try:
            process = subprocess.Popen(command, env=environ)  # noqa: S603 - no shell
        except OSError as error:
            raise Failure(f"{client.program} cannot be started: {error.strerror}") from None
        try:
            code = process.wait()
        finally:
            process.terminate()
            process.wait()
    return code if code >= 0 else _BY_SIGNAL - code


@contextmanager
def _left_to_the_client() -> Iterator[None]:
    """Within the block, Ctrl-C reaches only the client: it shares the terminal, and decides what that ends."""
    with _handled(_OF_TERMINAL, lambda _number, _frame: None):
        yield


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Within the block, the end of the terminal raises SystemExit, so that files and processes are removed."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(_BY_SIGNAL + number)

    with _handled(_ENDING, end):
        yield


@contextmanager
def _handled(numbers: Sequence[int], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Within the block, handle signals, except those that the parent process had this one ignore.

    Programs that start within it do not inherit the handler, as they would inherit that a signal is ignored.
    """
    before = {number: signal.getsignal(number) for number in numbers}
    heard = [number for number in numbers if before[number] is not signal.SIG_IGN]
    for each in heard:
        signal.signal(each, handler)
    try:
        yield
    finally:
        for each in heard:
            signal.signal(each, before[each])


SQL = Command(
    _run,
    _add_arguments,
    details=(
        "The client is mysql, mariadb or mycli. It connects through `kubectl port-forward` to one pod, with the "
        "cluster's TLS. OPTIONs after -- are its own, such as `-- --table test`. The exit code is the client's."
    ),
    takes_rest=True,
    formats=FORMATS[:1],
)
