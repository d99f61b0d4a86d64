"""Splitting lists of 60 MB with any content: the cost of one shape beside another of the same size.

The bytes arrive through the client in pieces of 64 KiB, as over a connection. A figure is the CPU time of a whole list,
the best of five. Earlier, four entries of managedFields cost three times as much as one; so did objects that end with
nested objects like themselves, if pieces always ended at the same place in one.
"""

import gc
import time
from collections.abc import Iterator

import msgspec

from bench.figures import show
from kube.client import Client
from kube.objects import Json
from kube.resources import TIDB_CLUSTERS
from ports.transport import ByteStream, ConnectionRefused, Request, Response

_SIZE = 60_000_000
_PIECE = 1 << 16
_BEST_OF = 5
_OBJECT = 8 << 10
_FIELDS = 3000
"""Bytes of an object's managedFields, whatever the number of managers."""


def main() -> int:
    """Run the suite. Raises RuntimeError if the resulting objects differ from the input."""
    one = _seconds([_cluster(managers=1)])
    shapes = {
        "four_managed_fields": [_cluster(managers=4)],
        "twelve_managed_fields": [_cluster(managers=12)],
        "lists_of_lookalikes": [_lookalike(_OBJECT + 113)],
        "objects_as_large_as_a_piece": [_lookalike(_PIECE - 1)],
        "mixed": [_cluster(managers=number) for number in range(1, 9)],
    }
    for name, items in shapes.items():
        show(f"custom_resources_60_mb_{name}_cpu_seconds", _seconds(items), round(one, 3), "s", "one entry, this run")
    return 0


class Pieces:
    """A transport that delivers one list piece by piece."""

    def __init__(self, items: list[bytes]) -> None:
        joined = b",".join(items)
        self.count = len(items) * (_SIZE // len(joined))
        head = b'{"apiVersion":"pingcap.com/v1alpha1","items":['
        tail = b'],"kind":"TidbClusterList","metadata":{"continue":"","resourceVersion":"9"}}'
        self._body = head + b",".join([joined] * (_SIZE // len(joined))) + tail

    def request(self, request: Request) -> Response:
        """Deliver the list. Raises ValueError without a receiver."""
        if request.receiver is None:
            raise ValueError("a list is received piece by piece")
        receive = request.receiver()
        for piece in self._pieces():
            receive(piece)
        return Response(200, {}, b"", streamed=len(self._body))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:  # noqa: ARG002  (there is no watch)
        """Refuse watches. Raises ConnectionRefused."""
        raise ConnectionRefused(request.method, request.url, "lists only")

    def _pieces(self) -> Iterator[bytes]:
        return (self._body[start : start + _PIECE] for start in range(0, len(self._body), _PIECE))


def _seconds(items: list[bytes]) -> float:
    pieces = Pieces(items)
    client = Client(pieces)
    best = float("inf")
    for _ in range(_BEST_OF):
        gc.collect()
        started = time.process_time()
        page = client.list_page(TIDB_CLUSTERS)
        best = min(best, time.process_time() - started)
        if len(page.items) != pieces.count:
            raise RuntimeError(f"{len(page.items)} objects instead of {pieces.count}")
    return best


def _cluster(managers: int) -> bytes:
    """A TidbCluster as the server writes it, its keys sorted."""
    fields: Json = {f"f:field-{number:04}": {} for number in range(_FIELDS // managers // 16)}
    entries = [
        {
            "apiVersion": "pingcap.com/v1alpha1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields},
            "manager": f"manager-{number}",
            "operation": "Update",
        }
        for number in range(managers)
    ]
    meta = {"managedFields": entries, "name": "basic", "namespace": "default", "resourceVersion": "5", "uid": "u"}
    spec = {f"field-{number:04}": {"value": number} for number in range((_OBJECT - _FIELDS) // 28)}
    tree = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": meta, "spec": spec}
    return msgspec.json.encode(tree)


def _lookalike(size: int) -> bytes:
    """An object of the given size. Its last field holds smaller objects whose first bytes are the same as its own."""
    same = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": {"name": "nested"}}
    tree = same | {"metadata": {"name": "basic"}, "spec": {"filler": "", "templates": [same] * 6}}
    tree["spec"] = {"filler": "x" * (size - len(msgspec.json.encode(tree))), "templates": [same] * 6}
    return msgspec.json.encode(tree)
