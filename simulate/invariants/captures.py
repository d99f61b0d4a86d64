"""TiCDC: replication of tables while captures come and go (I45)."""

from apis import duration
from kube.resources import STATEFUL_SETS
from simulate.engine.state import is_ready
from simulate.invariants.facts import asked_for, is_suspended, spec_of
from simulate.invariants.operator_write import OperatorWrite

_TIMEOUT = 10 * 60.0


def i45(write: OperatorWrite) -> str | None:
    """The operator removes no Ready TiCDC pod while its capture has tables that another could take.

    A capture that was drained for as long as the user allows is excepted.
    """
    (component, hit), (shrinking, leaving) = write.restarts, write.leaving
    if "ticdc" not in (component, shrinking) or write.deletes(STATEFUL_SETS):
        return None
    going = {*(hit if component else ()), *(leaving if shrinking else ())}
    pods, wanted = write.before.pods("ticdc"), asked_for(write.known, "ticdc")
    if is_suspended(write.before.cluster, "ticdc"):
        return None
    for ordinal in sorted(going):
        others_stay = wanted > (0 if ordinal in leaving else 1)
        if ordinal not in pods or not is_ready(pods[ordinal]) or not others_stay:
            continue
        pod = write.before.pod_name("ticdc", ordinal)
        capture = write.before.captures.get(pod)
        if capture is not None and capture.tables and not _had_its_time(write, capture.id):
            return f"{write.call} ends the capture of {pod}, which has {capture.tables} tables"
    return None


def _had_its_time(write: OperatorWrite, capture: str) -> bool:
    timeout = spec_of(write.seen, "ticdc").get("gracefulShutdownTimeout")
    limit = duration.seconds(timeout) if timeout else _TIMEOUT
    return write.before.now - write.before.stopping_since.get(capture, write.before.now) >= limit
