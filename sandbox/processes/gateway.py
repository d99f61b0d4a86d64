"""What real pods reach beside each other: addresses of Services, simulated pods, the API server, and the DNS server.

For each such address and port a socket listens in the pods' network; a Service without an endpoint refuses connections,
as in a cluster. A connection to a real process is passed through byte by byte and comes from the pod that opened it;
the sandbox's proxy answers one to a simulated process.
"""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Hashable

import structlog

from kube.objects import Json
from kube.resources import PODS, SERVICES
from ports.clock import Clock
from sandbox.apiserver.services import ADDRESSES
from sandbox.cluster import Cluster
from sandbox.dataplane.network import Network, Origin
from sandbox.dataplane.runtime import CHANGED
from sandbox.forward_proxy import pass_through
from sandbox.processes import api_endpoint, dns
from sandbox.processes.agent_client import GATEWAY, Agent, AgentError
from sandbox.processes.api_endpoint import ApiEndpoint
from sandbox.processes.process import RealProcess

_log = structlog.get_logger(__name__)

_DNS_PORT = 53
_BUFFER = 65536
_LOOK = 0.5
_CONNECTS_WITHIN = 5.0
_RETRY = 0.2
"""Seconds between two looks at Services without an endpoint: nothing reports each port of a process."""

Play = Callable[[socket.socket, str], None]
"""Plays the simulated server `host:port` on a connection, until it ends."""


class Gateway:
    """An actor that opens a socket for each address of a served Service and of a simulated pod, and serves them."""

    name = "gateway"
    watches: tuple[Hashable, ...] = (SERVICES, PODS, CHANGED)

    def __init__(
        self, agent: Agent, cluster: Cluster, network: Network, play: Play, api: ApiEndpoint, *, clock: Clock
    ) -> None:
        """Raises AgentError if the DNS server or the API server's endpoint cannot listen."""
        self._agent = agent
        self._cluster = cluster
        self._network = network
        self._play = play
        self._api = api
        self._clock = clock
        self._open: dict[tuple[str, int], socket.socket] = {}
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._woken, self._wake = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        agent.ask("refuse", network=str(ADDRESSES))
        self._names = {kind: agent.listen(GATEWAY, _DNS_PORT, kind) for kind in ("udp", "tcp")}
        self._own = (*self._names.values(), agent.listen(GATEWAY, api_endpoint.PORT))
        for listening in self._own:
            self._selector.register(listening, selectors.EVENT_READ)
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="gateway", daemon=True)
        self._thread.start()

    def step(self) -> float | None:
        """Open and close sockets so that each Service with an endpoint and each simulated pod has one."""
        of_services = self._of_services()
        served = [place for place in of_services if self._network.listener(*place) is not None]
        endpoints = {*served, *self._of_simulated_pods()}
        with self._lock:
            for endpoint in self._open.keys() - endpoints:
                listening = self._open.pop(endpoint)
                self._selector.unregister(listening)
                listening.close()
            for address, port in sorted(endpoints - self._open.keys()):
                try:
                    listening = self._agent.listen(address, port)
                except AgentError as error:
                    _log.warning("an address cannot be served", address=address, port=port, cause=str(error))
                    continue
                self._open[address, port] = listening
                self._selector.register(listening, selectors.EVENT_READ)
        self._wake.send(b"1")
        return None if len(served) == len(of_services) else self._clock.now() + _RETRY

    def stop(self) -> None:
        """Close all sockets. Idempotent."""
        self._stopping = True
        with contextlib.suppress(OSError):
            self._wake.send(b"1")
        self._thread.join()
        with self._lock:
            for listening in (*self._open.values(), *self._own, self._woken, self._wake):
                listening.close()
            self._open.clear()

    def _of_services(self) -> list[tuple[str, int]]:
        services = [each["spec"] for each in self._cluster.list(SERVICES)]
        return [
            (spec["clusterIP"], port["port"])
            for spec in services
            if spec.get("clusterIP") not in (None, "", "None")
            for port in spec.get("ports") or ()
            if port.get("protocol", "TCP") == "TCP"
        ]

    def _of_simulated_pods(self) -> list[tuple[str, int]]:
        endpoints = []
        for pod in self._cluster.list(PODS):
            address = pod.get("status", {}).get("podIP")
            running = self._network.of(pod["metadata"]["uid"])
            if address and running and not any(isinstance(each.process, RealProcess) for each in running):
                endpoints += [(address, port) for port in sorted(_ports(pod))]
        return endpoints

    def _addresses(self, name: str) -> list[str]:
        if name == f"{api_endpoint.NAME}.{self._network.domain}":
            return [GATEWAY]
        return self._network.addresses(name, Origin()) if ".svc." in f"{name}." else []

    def _serve(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select(_LOOK):
                if key.fileobj is self._woken:
                    self._woken.recv(_BUFFER)
                    continue
                assert isinstance(key.fileobj, socket.socket)
                try:
                    self._take(key.fileobj)
                except OSError as error:
                    # a client that is gone, or a socket that was closed meanwhile
                    _log.debug("connection broken", server="gateway", cause=str(error))

    def _take(self, listening: socket.socket) -> None:
        if listening is self._names["udp"]:
            dns.answer_datagram(listening, self._addresses)
            return
        address, port = listening.getsockname()
        connection, client = listening.accept()
        arguments = (connection, client[0], address, port)
        threading.Thread(target=self._talk, args=arguments, name=f"gateway-{address}:{port}", daemon=True).start()

    def _talk(self, connection: socket.socket, client: str, address: str, port: int) -> None:
        with contextlib.suppress(OSError), connection:
            if (address, port) == (GATEWAY, _DNS_PORT):
                dns.answer_stream(connection, self._addresses)
                return
            if (address, port) == (GATEWAY, api_endpoint.PORT):
                self._api.serve(connection)
                return
            # kube-proxy would choose any endpoint, and pass on a refusal: this connection is established already
            destination = self._network.listener(address, port)
            if destination is None:
                return
            running, target = destination
            if isinstance(running.process, RealProcess):
                with running.process.connect(target, _CONNECTS_WITHIN, client) as other:
                    pass_through(connection, other)
            else:
                self._play(connection, f"{address}:{port}")


def _ports(pod: Json) -> set[int]:
    return {port["containerPort"] for container in pod["spec"]["containers"] for port in container.get("ports") or ()}
