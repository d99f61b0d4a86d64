"""An API server that only streams events of pods: in process, or `python -m bench.streams EVENTS RATE`.

As a program it prints its port, answers LIST with an empty list, and sends each watch EVENTS events at RATE per second;
the annotation `sent` has the machine's monotonic clock when the event is written to the socket.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from bench.workload import pod
from kube.objects import Json
from ports.transport import ByteStream, ConnectionRefused, Request, Response

SENT = "sent"
_EMPTY_LIST = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'
_PODS = 500


class EventTransport:
    """A transport whose first watch delivers the given lines and ends; a second one is refused."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._streams = iter([Chunks(chunks)])

    def request(self, request: Request) -> Response:  # noqa: ARG002  (every list is empty)
        """An empty list."""
        return Response(200, {}, _EMPTY_LIST)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:  # noqa: ARG002
        """The stream. Raises ConnectionRefused from the second call on."""
        for stream in self._streams:
            return stream
        raise ConnectionRefused(request.method, request.url, "the stream is over")


class Chunks:
    """A stream that has arrived already."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        """The chunks."""
        return iter(self._chunks)

    def abort(self) -> None: ...

    def close(self) -> None: ...


def trees() -> list[Json]:
    """Pods as the server sends them: about 9 KB, a third of it managedFields."""
    made = []
    for number in range(_PODS):
        tree = pod(number)
        fields: Json = {f"f:field-{each}": {} for each in range(150)}
        tree["metadata"] |= {
            "uid": f"00000000-0000-4000-9000-{number:012d}",
            "managedFields": [{"manager": "bench", "operation": "Update", "fieldsV1": {"f:spec": fields}}],
        }
        made.append(tree)
    return made


def line(number: int, pods: list[Json], sent: float = 0.0) -> bytes:
    """The line of event `number`: each pod is added once, then modified."""
    tree = pods[number % _PODS]
    tree["metadata"]["resourceVersion"] = str(number + 2)
    tree["metadata"]["annotations"][SENT] = repr(sent)
    of = "ADDED" if number < _PODS else "MODIFIED"
    return msgspec.json.encode({"type": of, "object": tree}) + b"\n"


def main() -> int:
    """Serve until killed."""
    events, rate = int(sys.argv[1]), float(sys.argv[2])
    pods = trees()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # as Go's servers do

        def do_GET(self) -> None:
            if "watch=true" not in self.path:
                self.send_response(200)
                self.send_header("Content-Length", str(len(_EMPTY_LIST)))
                self.end_headers()
                self.wfile.write(_EMPTY_LIST)
                return
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            started = time.monotonic()  # noqa: TID251  (one clock for two processes)
            for number in range(events):
                time.sleep(max(0.0, started + number / rate - time.monotonic()))  # noqa: TID251
                data = line(number, pods, time.monotonic())  # noqa: TID251
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            time.sleep(60)  # noqa: TID251  (the reader ends it)

        def log_message(self, *arguments: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)  # noqa: T201  (for the parent)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
