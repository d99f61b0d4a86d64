"""Programs of monitors, which say that they are ready and no more: Prometheus, Grafana and what is beside them.

Where a real Prometheus is installed it can be given the same configuration (docs/metrics.md).
"""

from ports.transport import Request, Response
from sandbox.dataplane.processes import Launch
from sandbox.dataplane.program import Handler

_READY = ("/-/ready", "/-/healthy", "/api/health")
_PROGRAMS = ("prometheus", "grafana")


def says_ready(launch: Launch) -> Handler | None:
    """What a program of a monitor answers, None for any other; those without a command are known by their image."""
    name = launch.command[0] if launch.command else launch.image.partition(":")[0].partition("@")[0]
    return _answer if name.rpartition("/")[2] in _PROGRAMS else None


def _answer(request: Request) -> Response:
    path = "/" + request.url.partition("?")[0].split("/", 3)[-1]
    known = path in _READY
    return Response(200 if known else 404, {"content-type": "text/plain"}, b"Ready.\n" if known else b"")
