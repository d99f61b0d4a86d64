"""What monitoring finds: `/metrics` of every server (dataplane-apis.md 15.2), and monitors that report to be ready.

Prometheus, Grafana and the others do nothing else. A real Prometheus, if installed, accepts the same configuration
(docs/metrics.md).
"""

from ports.transport import Request, Response
from sandbox.dataplane.processes import Answer, Launch, Process
from sandbox.dataplane.program import Handler

_READY = ("/-/ready", "/-/healthy", "/api/health")
_PROGRAMS = ("prometheus", "grafana")

_NOT_FOUND = 404
_HEADERS = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}


def says_ready(launch: Launch) -> Handler | None:
    """The handler of a monitor's program, else None; programs without a command are recognised by their image."""
    name = launch.command[0] if launch.command else launch.image.partition(":")[0].partition("@")[0]
    return _answer if name.rpartition("/")[2] in _PROGRAMS else None


def _answer(request: Request) -> Response:
    path = "/" + request.url.partition("?")[0].split("/", 3)[-1]
    known = path in _READY
    return Response(200 if known else 404, {"content-type": "text/plain"}, b"Ready.\n" if known else b"")


def handled(process: Process, launch: Launch, port: int, request: Request) -> Answer:
    """A process's answer; if its API has no metrics, the metrics of all servers."""
    answer = process.handle(port, request)
    is_metrics = request.method == "GET" and request.url.partition("?")[0].endswith("/metrics")
    began_at: float | None = getattr(process, "began_at", None)
    if not is_metrics or answer.response.status != _NOT_FOUND or began_at is None:
        return answer
    return Answer(Response(200, _HEADERS, _page(launch, began_at).encode()))


def _page(launch: Launch, began_at: float) -> str:
    lines = (
        "# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.",
        "# TYPE process_start_time_seconds gauge",
        f"process_start_time_seconds {began_at}",
        "# HELP simulated_build_info The version that the image says.",
        "# TYPE simulated_build_info gauge",
        f'simulated_build_info{{version="{launch.version}"}} 1',
        "",
    )
    return "\n".join(lines)
