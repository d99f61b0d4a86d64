"""Pods for both a real kubelet and the sandbox's, and a record of the statuses that each reports.

Processes are scripts of sleep and exit, which both understand: hack/controlplane/kubernetes/kubelet parses them, the
sandbox's shell runs them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SECRET = "late"
"""This Secret is created after a while."""
DELETED_AT = 20.0
MADE_AT = 45.0
END = 130.0
"""Seconds."""

_UID = re.compile(r"\([0-9a-f]{8}-[0-9a-f-]{27}\)")
_RUNS = "sleep 1000"
_OF_SECRET: Json = {"env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": "k"}}}]}


def _container(name: str, script: str = _RUNS, image: str = "busybox:1", **more: Any) -> Json:
    return {"name": name, "image": image, "command": ["/bin/sh", "-c", script], **more}


def _pod(*containers: Json, init: Sequence[Json] = (), **spec: Any) -> Json:
    return {"containers": list(containers), **({"initContainers": list(init)} if init else {}), **spec}


_A, _B = _container("a"), _container("b")

SPECS: Mapping[str, Json] = {
    "two-containers": _pod(_A, _B),
    "one-image-is-missing": _pod(_A, _container("b", image="busybox:missing")),
    "one-lacks-a-secret": _pod(_A, _container("b", **_OF_SECRET)),
    "one-crashes": _pod(_container("a", "sleep 1; exit 3"), _B),
    "one-ends-again-and-again": _pod(_container("a", "sleep 3; exit 0")),
    "a-volume-lacks-its-secret": _pod(_A, volumes=[{"name": "v", "secret": {"secretName": SECRET}}]),
    "init-runs": _pod(_A, init=[_container("i", "sleep 2; exit 0"), _container("j", "sleep 2; exit 0")]),
    "init-fails": _pod(_A, init=[_container("i", "sleep 1; exit 4")]),
    "init-image-is-missing": _pod(_A, init=[_container("i", image="busybox:missing")]),
    "invalid-image": _pod(_container("a", image="busy box"), _B),
    "task-ends-well": _pod(_container("a", "sleep 3; exit 0"), restartPolicy="Never"),
    "task-ends-ill": _pod(_container("a", "sleep 3; exit 5"), restartPolicy="Never"),
    "task-ends-beside-one-that-runs": _pod(_container("a", "sleep 3; exit 5"), _B, restartPolicy="Never"),
    "deleted": _pod(_A, _B, terminationGracePeriodSeconds=8),
}
"""The pods' specs, by name."""

DELETED = "deleted"
"""This pod is deleted after a while."""


def pods(node: str) -> list[Json]:
    """The pods, bound to a node."""
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": node, **spec}}
        for name, spec in SPECS.items()
    ]


@dataclass(frozen=True, slots=True)
class Told:
    """The successive statuses of a pod and its containers."""

    parts: dict[str, list[str]] = field(default_factory=dict)

    def add(self, pod: Json) -> None:
        """Record the next status."""
        status = pod.get("status") or {}
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
        words = [status.get("phase", ""), "deleted" if pod["metadata"].get("deletionTimestamp") else ""]
        self._add("pod", " ".join(filter(None, (*words, "Ready" if ready else ""))))
        for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            self._add(each["name"], _container_text(each))

    def end(self) -> None:
        """Record the end of the pod."""
        self._add("pod", "gone")

    def _add(self, part: str, text: str) -> None:
        lines = self.parts.setdefault(part, [])
        if lines[-1:] != [text]:
            lines.append(text)


def _container_text(status: Json) -> str:
    ready = " ready" if status["ready"] else ""
    ended = f", before {_state(last)}" if (last := status.get("lastState")) else ""
    return f"{_state(status['state'])}{ready}, {status['restartCount']} restarts{ended}"


def _state(state: Json) -> str:
    (kind, what), *_ = state.items()
    if kind == "terminated":
        return f"ended: {what['reason']} {what['exitCode']}"
    return "running" if kind == "running" else f"{what['reason']}: {_UID.sub('', what.get('message', ''))}".strip(": ")
