"""The command `tidb-controller-manager-check`, for `helm test`: are all pods of an operator healthy, and does one lead?

It reads `/healthz`, `/readyz` and `/metrics` of the pods behind a headless Service, and needs no rights in Kubernetes.
"""

import argparse
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from controller_manager.addresses import parse_address
from dataplane.http_transport import HttpTransport
from ports.clock import Clock, SystemClock
from ports.stopping import Stop
from ports.transport import Request, Transport, TransportError

PROGRAM = "tidb-controller-manager-check"

_STATUS = "leader_election_master_status"
_REQUEST_TIMEOUT = 5.0
_PAUSE = 1.0

Resolve = Callable[[str], Sequence[str]]
"""Returns the addresses of a name; empty if it has none."""


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods behind a headless Service, and the way to reach them."""

    host: str
    port: int
    addresses: Resolve
    transport: Transport


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0 if all is well, 1 if not within the given time."""
    options = _parse(sys.argv[1:] if argv is None else argv)
    host, port = options.address
    clock, never = SystemClock(), Stop()
    transport = HttpTransport({})
    try:
        return check(
            Pods(host, port, resolve, transport),
            leases=options.leases,
            within=options.within,
            clock=clock,
            pause=lambda seconds: never.wait(clock, seconds),
            say=print,
        )
    finally:
        transport.close()


def check(
    pods: Pods,
    *,
    leases: int,
    within: float,
    clock: Clock,
    pause: Callable[[float], object],
    say: Callable[[str], None],
) -> int:
    """Poll until all pods are healthy and hold the given number of Leases, for at most `within` seconds; print the last
    state.

    Returns the exit code.
    """
    end = clock.now() + within
    while (problems := list(_problems(pods, leases))) and clock.now() < end:
        pause(_PAUSE)
    for problem in problems:
        say(problem)
    if not problems:
        say(f"{pods.host}:{pods.port}: healthy; Leases held: {leases}")
    return 1 if problems else 0


def resolve(host: str) -> Sequence[str]:
    """The current addresses in DNS."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return ()
    return sorted({str(address[0]) for *_, address in found})


def _problems(pods: Pods, leases: int) -> Iterator[str]:
    found = pods.addresses(pods.host)
    if not found:
        yield f"{pods.host}: no address; is a pod of the controller-manager running?"
        return
    holders = Counter[str]()
    for address in found:
        base = f"http://[{address}]:{pods.port}" if ":" in address else f"http://{address}:{pods.port}"
        try:
            for page in ("/healthz", "/readyz"):
                status, text = _get(pods.transport, base + page)
                if status != 200:
                    yield f"{base}{page}: {status}: {text.strip()}"
            holders.update(_held(_get(pods.transport, f"{base}/metrics")[1]))
        except TransportError as error:
            yield str(error)
    if len(holders) != leases:
        yield f"{pods.host}: the pods hold {len(holders)} Leases, expected {leases}; their logs say why"
    for lease, held in holders.items():
        if held > 1:
            yield f"{pods.host}: {held} pods say that they hold the Lease {lease}"


def _get(transport: Transport, url: str) -> tuple[int, str]:
    answer = transport.request(Request("GET", url, timeout=_REQUEST_TIMEOUT))
    return answer.status, answer.body.decode(errors="replace")


def _held(metrics: str) -> Iterator[str]:
    """The names of the held Leases, from a pod's metrics."""
    families = (family for family in text_string_to_metric_families(metrics) if family.name == _STATUS)
    return (sample.labels["name"] for family in families for sample in family.samples if sample.value == 1)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        PROGRAM, description="Show whether all pods of an operator are healthy, and who leads."
    )
    parser.add_argument("address", type=parse_address, help="headless Service and port, such as NAME.NAMESPACE:6060")
    parser.add_argument("--leases", type=int, default=1, help="how many they must hold: 0 of observers")
    parser.add_argument("--within", type=float, default=60.0, help="seconds until all must be well")
    return parser.parse_args(argv)
