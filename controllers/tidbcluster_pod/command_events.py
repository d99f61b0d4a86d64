"""Events of the TidbCluster about commands on its pods, one for each change of their state."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from controllers.cache_waits import CacheWaits
from kube.events import NORMAL, WARNING, EventRecorder
from kube.objects import Object
from member.memory.cluster import ClusterMemory
from member.outcome import DONE, Failed, Outcome, Refused

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class PodMemory:
    """The memory of one pod.

    `owner` is the key of its cluster. `reported` is the UID of the pod and the last reported reason, `warned` its UID
    and the reported problems. `is_slow` is True if servers that its command needs did not answer in time. `cluster`
    holds measurements of its commands.
    """

    owner: str = ""
    reported: tuple[str, str] | None = None
    warned: tuple[str, ...] = ()
    is_slow: bool = False
    cluster: ClusterMemory = field(default_factory=ClusterMemory)
    cache_waits: CacheWaits = field(default_factory=CacheWaits)


def report(recorder: EventRecorder, memory: PodMemory, cluster: Object, uid: str, outcome: Outcome) -> None:
    """Report the outcome of the command of a pod with the UID `uid`, if its reason has changed."""
    news = None if outcome.reason == DONE else (uid, outcome.reason)
    if news is not None and news != memory.reported:
        log.info("pod command", reason=outcome.reason, message=outcome.message)
        kind = WARNING if isinstance(outcome, Refused | Failed) else NORMAL
        recorder.event(cluster, kind, outcome.reason, outcome.message)
    memory.reported = news


def warn(recorder: EventRecorder, memory: PodMemory, cluster: Object, uid: str, problems: Sequence[str]) -> None:
    """Warn once of annotations with unknown commands."""
    news = (uid, *problems) if problems else ()
    if news != memory.warned:
        for problem in problems:
            log.warning("unknown command", problem=problem)
            recorder.event(cluster, WARNING, "UnknownCommand", problem)
    memory.warned = news
