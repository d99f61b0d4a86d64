"""The Backup or Restore of a Job: read live, and written whole with the version that was read.

Users' Roles grant `update` but not `patch` (backup.md 8), and the CRDs have no status subresource. A write is therefore
a PUT of the object as read with another status, which the server refuses if the object has changed.
"""

import functools
from collections.abc import Callable
from typing import Any

import structlog

from kube.client import Client
from kube.errors import ApiError, Conflict, InternalError, NotFound, ServerTimeout, TooManyRequests
from kube.objects import Json
from kube.resources import Resource
from ports.clock import Clock
from ports.foreign_text import printable
from ports.stopping import Stop
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

Change = Callable[[Json], Json]
"""Returns the new tree; called again if another client has written meanwhile."""

_PASSING = (Conflict, InternalError, ServerTimeout, TooManyRequests, TransportError)
_PATIENCE = 300.0
"""Seconds for which a write of the outcome is retried: it may be about hours of work."""
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 10.0


class RecordGone(Exception):
    """Raised if the object does not exist or was recreated."""

    def __init__(self, resource: Resource, namespace: str, name: str, why: str = "it does not exist") -> None:
        super().__init__(f"cannot work for {resource.kind} {namespace}/{name}: {why}")


class Record:
    """An object, by name and, after the first read, by UID."""

    def __init__(self, client: Client, clock: Clock, resource: Resource, namespace: str, name: str) -> None:
        self._client = client
        self._clock = clock
        self._resource = resource
        self._namespace = namespace
        self._name = name
        self._uid = ""
        # a stop of its own, because the outcome is written even after a signal
        self._never = Stop()

    def read(self) -> Json:
        """The current object. Raises RecordGone, ApiError, TransportError."""
        try:
            found = self._client.get(self._resource, self._name, self._namespace)
        except NotFound as error:
            raise RecordGone(self._resource, self._namespace, self._name) from error
        if self._uid and found.metadata.uid != self._uid:
            why = "it was deleted, and another one has its name"
            raise RecordGone(self._resource, self._namespace, self._name, why)
        self._uid = found.metadata.uid
        return found.decode()

    def change(self, change: Change) -> Json:
        """Write the result of `change` and return the object; without a difference there is no request.

        Errors that may pass are retried for five minutes. Raises RecordGone, ApiError, TransportError.
        """
        deadline = self._clock.now() + _PATIENCE
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._change_once(change)
            except _PASSING as error:
                if self._clock.now() + pause > deadline:
                    raise
                _log.info("writing again", name=self._name, cause=str(error))
            self._never.wait(self._clock, pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def change_status(self, change: Change) -> Json:
        """Like `change`, for the status only; return the status."""
        changed: Json = self.change(functools.partial(_on_status, change)).get("status") or {}
        return changed

    def try_status(self, change: Change) -> None:
        """Like `change_status`, for information that later writes repeat: one try, and a failure is logged."""
        try:
            self._change_once(functools.partial(_on_status, change))
        except (RecordGone, ApiError, TransportError) as error:
            _log.warning("progress not written", name=self._name, cause=str(error))

    def annotate(self, name: str, value: str | None) -> None:
        """Set an annotation (None removes it). Raises like `change`."""

        def annotated(tree: Json) -> Json:
            there = dict(tree["metadata"].get("annotations") or {})
            if value is None:
                there.pop(name, None)
            else:
                there[name] = value
            return tree | {"metadata": tree["metadata"] | {"annotations": there}}

        self.change(annotated)

    def _change_once(self, change: Change) -> Json:
        there = self.read()
        wanted = change(there)
        if wanted == there:
            return there
        return self._client.replace(self._resource, self._name, self._namespace, wanted).decode()


def _on_status(change: Change, tree: Json) -> Json:
    status = tree.get("status") or {}
    changed = _shown(change(status))
    return tree if changed == status else tree | {"status": changed}


def _shown(status: Json) -> Json:
    """The status with printable reasons and messages, which may quote tools and servers."""
    return {key: _shown_value(key, value) for key, value in status.items()}


def _shown_value(key: str, value: Any) -> Any:
    match value:
        case str() if key in ("reason", "message"):
            return printable(value, lines=True)
        case dict():
            return _shown(value)
        case list():
            return [_shown_value(key, each) for each in value]
    return value
