"""Clients from configurations: the one place that assembles the layers of a connection."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kube.client import Client
from kube.config import ClusterConfig
from kube.http_transport import HttpTransport
from kube.resources import Resource
from kube.rest_metrics import RequestObserver
from kube.retrying import RetryingTransport
from kube.throttle import Rate, Throttle
from kube.url_backoff import from_environment
from ports.clock import Clock
from ports.fencing import Fence
from ports.product import USER_AGENT
from ports.stopping import Stop
from ports.transport import Transport


@dataclass(frozen=True, slots=True)
class Connection:
    """A client and its transport, which the owner closes."""

    client: Client
    transport: HttpTransport


def connect(
    config: ClusterConfig,
    environ: Mapping[str, str],
    clock: Clock,
    stop: Stop,
    *,
    rate: Rate | None = None,
    fence: Fence | None = None,
    observer: RequestObserver | None = None,
    user_agent: str = USER_AGENT,
    wrap: Callable[[Transport], Transport] = lambda transport: transport,
    hurry: Stop | None = None,
    instead: Mapping[Resource, Resource] = MappingProxyType({}),
) -> Connection:
    """A client that throttles (default: 50 requests per second, bursts of 100), retries, and obeys `fence`.

    Sends nothing yet. `wrap` inserts a layer in front of the server. `stop` ends waits between attempts;
    `transport.close()` ends open requests. RetryingTransport explains `hurry`, Client `instead`. Raises
    ConfigError.
    """
    http = HttpTransport(config, environ, clock)
    throttle = Throttle(rate or Rate(), clock)
    backoff = from_environment(environ, clock)
    retrying = RetryingTransport(
        wrap(http), clock, throttle, stop, fence=fence, observer=observer, backoff=backoff, hurry=hurry
    )
    return Connection(Client(retrying, user_agent=user_agent, instead=instead), http)


def connect_directly(
    config: ClusterConfig, environ: Mapping[str, str], clock: Clock, *, timeout: float, user_agent: str
) -> Connection:
    """A client without throttle, retries and fence, for the leader elector, which has its own (LE-4).

    `timeout` is the seconds per request. Raises ConfigError.
    """
    http = HttpTransport(config, environ, clock)
    return Connection(Client(http, user_agent=user_agent, timeout=timeout), http)
