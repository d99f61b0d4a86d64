"""The present status of TiCDC (lifecycle.md 5.6). Reads only."""

from apis.component_statuses import TiCDCCapture
from apis.ordinals import desired_replicas
from dataplane.errors import BadTlsMaterial, DataPlaneError
from dataplane.ticdc import PORT, TiCDCClient
from member import api_clients
from member.context import ReconcileContext
from member.observed.pods import started_pods
from member.observed.status import ask_all, observe_pods
from member.outcome import Done, Failed, Outcome


def observe(ctx: ReconcileContext) -> Outcome:
    """Update `status.ticdc`, with a capture for each existing pod."""
    status = ctx.status.ticdc
    status.synced = False
    pods = observe_pods(ctx, "ticdc", status)
    if pods is None:
        status.captures = {}
        return Done()
    running = started_pods(pods, "ticdc")
    try:
        status.captures = _captures(ctx, [pod.metadata.name for pod in pods], running)
    except BadTlsMaterial as error:
        return Failed("BadTLS", str(error))
    ready = [capture.ready for capture in status.captures.values()]
    status.synced = len(ready) == desired_replicas(ctx.tc, "ticdc") and all(ready)
    return Done()


def _captures(ctx: ReconcileContext, pods: list[str], running: set[str]) -> dict[str, TiCDCCapture]:
    clients = {pod: client(ctx, pod) for pod in pods if pod in running}

    def ask(pod: str, timeout: float) -> TiCDCCapture:
        if pod not in clients:
            return TiCDCCapture(pod_name=pod)
        try:
            says = clients[pod].status(timeout)
        except DataPlaneError:
            return TiCDCCapture(pod_name=pod)
        return TiCDCCapture(pod_name=pod, id=says.id, version=says.version, is_owner=says.is_owner, ready=True)

    return ask_all(ctx, sorted(pods), ctx.status.ticdc.servers, ask)


def client(ctx: ReconcileContext, pod: str) -> TiCDCClient:
    """A client for the capture in a pod. Raises BadTlsMaterial."""
    return TiCDCClient(api_clients.caller(ctx, "ticdc", pod, PORT))
