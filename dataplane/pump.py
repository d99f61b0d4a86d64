"""Pump: the nodes that register in PD's etcd, and the HTTP API (dataplane-apis.md 10)."""

from dataclasses import InitVar, dataclass
from typing import final
from urllib.parse import quote

import msgspec

from dataplane.addresses import Address
from dataplane.answers import Name
from dataplane.calls import Caller
from dataplane.errors import Conflict, MalformedAnswer, misread
from dataplane.etcd import EtcdClient
from ports.clock import Clock, SystemClock
from ports.fencing import Fence, OpenFence
from ports.structs import UNREADABLE
from ports.transport import Transport

PUMP_ONLINE = "online"
PUMP_CLOSING = "closing"
PUMP_OFFLINE = "offline"

_PREFIX = "/tidb-binlog/v1/pumps/"
_DONE = 200

_LIVE_READ = object()


@final
@dataclass(frozen=True, slots=True)
class LivePumpNode:
    """A Pump node as PD's etcd listed it in this reconcile. Only `read_pump_nodes` creates one.

    `host` is the advertised `host:port`; `state` is online, pausing, paused, closing or offline.
    """

    id: str
    host: str
    state: str
    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError unless a read of etcd creates the object."""
        if maker is not _LIVE_READ:
            raise TypeError("a LivePumpNode comes from read_pump_nodes, which asks PD's etcd")


def read_pump_nodes(etcd: EtcdClient) -> tuple[LivePumpNode, ...]:
    """All nodes that ever registered, by id, including offline ones. Raises Unavailable, ApiError."""
    return tuple(_node(value) for _, value in sorted(etcd.below(_PREFIX).items()))


class PumpClient:
    """One Pump. Thread-safe."""

    def __init__(
        self, transport: Transport, base_url: Address, clock: Clock | None = None, fence: Fence | None = None
    ) -> None:
        """A client of the Pump at `base_url`."""
        self._call = Caller(transport, base_url, fence or OpenFence(), clock or SystemClock())

    def close(self, node: LivePumpNode) -> None:
        """Ask a node to accept no more binlogs; it goes offline when all its binlogs have been read.

        Raises Conflict if it refuses, TypeError if etcd has not listed the node; Unavailable, ApiError, LeaseExpired.
        """
        if not isinstance(node, LivePumpNode):
            raise TypeError(f"a node is closed as etcd shows it: take it from read_pump_nodes, not {node!r}")
        path = f"/state/{quote(node.id, safe=':')}/close"
        answer = self._call.write("PUT", path, done="Pump node asked to close", about={"node": node.id})
        try:
            result = _RESULT.decode(answer.body)
        except UNREADABLE as error:
            raise self._call.malformed(path, misread(answer.body, error)) from error
        if result.code != _DONE:
            # Pump sends a refusal with an HTTP success status
            raise Conflict("PUT", self._call.base_url + path, answer.status, answer.body, "Pump refused to close")


class _Node(msgspec.Struct, rename="camel"):
    node_id: Name
    host: Name
    state: Name


class _Result(msgspec.Struct):
    code: int
    message: str = ""


_NODE = msgspec.json.Decoder(_Node)
_RESULT = msgspec.json.Decoder(_Result)


def _node(value: bytes) -> LivePumpNode:
    try:
        node = _NODE.decode(value)
    except UNREADABLE as error:
        # the error does not name the key: the server may choose any text that begins with the prefix
        reason = f"a Pump node {misread(value, error)}"
        raise MalformedAnswer("GET", _PREFIX, _DONE, reason=reason) from error
    return LivePumpNode(node.node_id, node.host, node.state, maker=_LIVE_READ)
