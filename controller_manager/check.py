"""The command `tidb-controller-manager-check`: are all pods of an operator healthy, and does one lead? For `helm test`.

It asks the pods behind a headless Service for `/healthz`, `/readyz` and `/metrics`, and needs no rights in Kubernetes.
"""

import argparse
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from controller_manager.addresses import parse_address
from dataplane.http_transport import HttpTransport
from ports.clock import Clock, SystemClock
from ports.stopping import Stop
from ports.transport import Request, Transport, TransportError

PROGRAM = "tidb-controller-manager-check"

_LEADS = "leader_election_master_status"
_REQUEST_TIMEOUT = 5.0
_PAUSE = 1.0

Resolve = Callable[[str], Sequence[str]]
"""The addresses behind a name; none when it has none."""


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods behind a headless Service, and how they are reached."""

    host: str
    port: int
    addresses: Resolve
    transport: Transport


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0 when all is well, 1 when it is not within the time given."""
    options = _parse(sys.argv[1:] if argv is None else argv)
    host, port = options.address
    clock, never = SystemClock(), Stop()
    transport = HttpTransport({})
    try:
        return check(
            Pods(host, port, resolve, transport),
            leaders=options.leaders,
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
    leaders: int,
    within: float,
    clock: Clock,
    pause: Callable[[float], object],
    say: Callable[[str], None],
) -> int:
    """Look until all pods are healthy and so many lead, for `within` seconds at most, and say what was seen last.

    The exit code, as `main`.
    """
    end = clock.now() + within
    while (problems := list(_problems(pods, leaders))) and clock.now() < end:
        pause(_PAUSE)
    for problem in problems:
        say(problem)
    if not problems:
        say(f"{pods.host}:{pods.port}: healthy, and {leaders} of the pods lead{'s' if leaders == 1 else ''}")
    return 1 if problems else 0


def resolve(host: str) -> Sequence[str]:
    """What DNS says now."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror:
        return ()
    return sorted({str(address[0]) for *_, address in found})


def _problems(pods: Pods, leaders: int) -> Iterator[str]:
    found = pods.addresses(pods.host)
    if not found:
        yield f"{pods.host}: no address; is a pod of the controller-manager running?"
        return
    leading = 0
    for address in found:
        base = f"http://[{address}]:{pods.port}" if ":" in address else f"http://{address}:{pods.port}"
        try:
            for page in ("/healthz", "/readyz"):
                status, text = _get(pods.transport, base + page)
                if status != 200:
                    yield f"{base}{page}: {status}: {text.strip()}"
            leading += _leads(_get(pods.transport, f"{base}/metrics")[1])
        except TransportError as error:
            yield str(error)
    if leading != leaders:
        yield f"{pods.host}: {leading} of {len(found)} lead, expected {leaders}; the logs of the pods say why"


def _get(transport: Transport, url: str) -> tuple[int, str]:
    answer = transport.request(Request("GET", url, timeout=_REQUEST_TIMEOUT))
    return answer.status, answer.body.decode(errors="replace")


def _leads(metrics: str) -> bool:
    families = (family for family in text_string_to_metric_families(metrics) if family.name == _LEADS)
    return any(sample.value == 1 for family in families for sample in family.samples)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        PROGRAM, description="Tell whether all pods of an operator are healthy and one leads."
    )
    parser.add_argument("address", type=parse_address, help="headless Service and port, such as NAME.NAMESPACE:6060")
    parser.add_argument("--leaders", type=int, default=1, help="how many must lead: 0 for one that only observes")
    parser.add_argument("--within", type=float, default=60.0, help="seconds until all must be well")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
