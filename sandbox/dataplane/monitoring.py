"""Programs of monitors (Prometheus, Grafana and others), which only report that they are ready.

A real Prometheus, if installed, accepts the same configuration (docs/metrics.md).
"""

from ports.transport import Request, Response
from sandbox.dataplane.processes import Launch
from sandbox.dataplane.program import Handler

_READY = ("/-/ready", "/-/healthy", "/api/health")
_PROGRAMS = ("prometheus", "grafana")


def says_ready(launch: Launch) -> Handler | None:
    """The handler of a monitor's program, else None; programs without a command are recognised by their image."""
    name = launch.command[0] if launch.command else launch.image.partition(":")[0].partition("@")[0]
    return _answer if name.rpartition("/")[2] in _PROGRAMS else None


def _answer(request: Request) -> Response:
    path = "/" + request.url.partition("?")[0].split("/", 3)[-1]
    known = path in _READY
    return Response(200 if known else 404, {"content-type": "text/plain"}, b"Ready.\n" if known else b"")
