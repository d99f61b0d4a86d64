"""CommandEvents what becomes of commands: as events of the TidbCluster, each turn of things once."""

from collections.abc import Sequence

import structlog

from kube.events import NORMAL, WARNING, EventRecorder
from kube.objects import Object
from member.outcome import DONE, Failed, Outcome, Refused

log = structlog.get_logger(__name__)


class CommandEvents:
    """What was told of each pod last."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._reasons: dict[str, tuple[str, str]] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}

    def outcome(self, cluster: Object, key: str, uid: str, outcome: Outcome) -> None:
        """Tell how the command of a pod, known by `uid`, stands, unless it stands as it did."""
        if outcome.reason == DONE:
            self._reasons.pop(key, None)
            return
        if self._reasons.get(key) == (uid, outcome.reason):
            return
        self._reasons[key] = uid, outcome.reason
        log.info("pod command", reason=outcome.reason, message=outcome.message)
        kind = WARNING if isinstance(outcome, Refused | Failed) else NORMAL
        self._recorder.event(cluster, kind, outcome.reason, outcome.message)

    def unknown(self, cluster: Object, key: str, uid: str, problems: Sequence[str]) -> None:
        """Warn of annotations that are no commands."""
        if not problems:
            self._warnings.pop(key, None)
            return
        if self._warnings.get(key) == (uid, *problems):
            return
        self._warnings[key] = uid, *problems
        for problem in problems:
            log.warning("not a command", problem=problem)
            self._recorder.event(cluster, WARNING, "UnknownCommand", problem)

    def forget(self, key: str) -> None:
        """Drop what is known of a pod that is told nothing any more."""
        self._reasons.pop(key, None)
        self._warnings.pop(key, None)
