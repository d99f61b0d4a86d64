"""A copy of the objects that actors read, kept by list and watch.

It can be driven in two ways: `start` runs a thread per resource; `poll` catches up once in the calling thread, so that
a single-threaded world is deterministic. An actor's own writes are shown immediately (`observe`), so it never acts
twice on a state that it has changed.
"""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from kube.client import Client, Watch
from kube.errors import ApiError, Expired
from kube.objects import Json, Object
from kube.resources import Resource
from ports.clock import Clock
from ports.stopping import Stop
from ports.transport import TransportError
from sandbox.apiserver.storage import Change, Stored, TooOld
from sandbox.indexed_objects import IndexedObjects
from sandbox.notifier import Notifier

_log = structlog.get_logger(__name__)

_PAGE = 500
_WATCH_SECONDS = 300
_PAUSE = 0.5
"""Seconds between two attempts after a failure."""
_REMEMBERED_DELETIONS = 10_000


class History(Protocol):
    """What the API server stores, read past its API: versions show cheaply whether something has changed."""

    @property
    def version(self) -> int:
        """The version of the latest write."""

    @property
    def compacted(self) -> int:
        """Another number once earlier changes are unknown."""

    def version_of(self, resource: str) -> int:
        """The version of a resource's latest write."""

    def changes_after(self, resource: str, version: int) -> Sequence[Change]:
        """The changes of a resource since a version, in order. Raises TooOld."""


class Mirror:
    """The objects of some resources as decoded, shared trees, which readers must not change."""

    def __init__(self, client: Client, resources: tuple[Resource, ...], clock: Clock, notifier: Notifier) -> None:
        self._client = client
        self._clock = clock
        self._notifier = notifier
        self._lock = threading.Lock()
        self._objects = {resource: IndexedObjects() for resource in resources}
        self._names = {resource: str(resource) for resource in resources}
        """The names of the resources in a history."""
        self._deleted: deque[str] = deque(maxlen=_REMEMBERED_DELETIONS)
        self._listed: set[Resource] = set()
        self._polled: dict[Resource, int] = {}
        self._polled_at = self._compacted = -1
        self._synced = threading.Condition()
        self._threads: list[threading.Thread] = []

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The mirrored resources."""
        return tuple(self._objects)

    @property
    def changes(self) -> int:
        """Grows whenever an object has changed, and sometimes without a change."""
        return self._notifier.total

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """An object, or None if it does not exist or has not arrived yet."""
        with self._lock:
            return self._objects[resource].get(f"{namespace}/{name}")

    def list(self, resource: Resource, namespace: str = "") -> list[Json]:
        """The objects of a namespace (empty: all), by namespace and name."""
        with self._lock:
            return self._objects[resource].within(namespace)

    def by_key(self, resource: Resource) -> dict[str, Json]:
        """All objects by `namespace/name`, unordered; the namespace of cluster-scoped objects is empty."""
        with self._lock:
            return dict(self._objects[resource].all())

    def selected(self, resource: Resource, namespace: str, labels: Mapping[str, str]) -> Sequence[Json]:
        """The objects of a namespace with all of `labels` (at least one), by name."""
        with self._lock:
            return self._objects[resource].selected(namespace, labels)

    def start(self, stop: Stop) -> None:
        """Follow every resource, each in its own thread, until `stop` is set."""
        for resource in self._objects:
            name = f"mirror-{resource}"
            thread = threading.Thread(target=self._follow, args=(resource, stop), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def join(self) -> None:
        """Wait for the threads to end, after the stop was set."""
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def wait_for_sync(self, timeout: float) -> None:
        """Wait until every resource was listed once. Raises TimeoutError after `timeout` seconds of the clock."""
        deadline = self._clock.now() + timeout
        with self._synced:
            while len(self._listed) < len(self._objects):
                remaining = deadline - self._clock.now()
                if remaining <= 0:
                    missing = sorted(str(resource) for resource in set(self._objects) - self._listed)
                    raise TimeoutError(f"not listed within {timeout} s: {', '.join(missing)}")
                self._clock.wait(self._synced, remaining)

    def poll(self, history: History | None = None) -> None:
        """List every resource; with a history, take over what has changed since. Raises ApiError, TransportError."""
        if history is None:
            for resource in self._objects:
                self._list(resource)
            return
        version = history.version
        if version == self._polled_at:
            return
        if history.compacted != self._compacted:
            # versions may even have gone back
            self._compacted = history.compacted
            self._polled.clear()
        for resource, name in self._names.items():
            latest = history.version_of(name)
            if self._polled.get(resource) != latest:
                self._catch_up(resource, history)
                self._polled[resource] = latest
        self._polled_at = version

    def _catch_up(self, resource: Resource, history: History) -> None:
        polled = self._polled.get(resource)
        try:
            changes = history.changes_after(self._names[resource], polled) if polled is not None else None
        except TooOld:
            changes = None
        if changes is None:
            self._list(resource)
            return
        for change in changes:
            # most changes are own writes, which the mirror shows already
            if change.type == "DELETED" or not self._shows(resource, change.stored):
                seen = Object(change.stored.raw, resource.api_version, resource.kind)
                self._apply(resource, change.type, seen)

    def _shows(self, resource: Resource, stored: Stored) -> bool:
        with self._lock:
            known = self._objects[resource].get(f"{stored.namespace}/{stored.name}")
        return known is not None and int(known["metadata"]["resourceVersion"]) >= stored.version

    def observe(self, resource: Resource, seen: Object) -> Json:
        """Show an object that a write has returned, unless the mirror has a newer one; return its tree."""
        tree = seen.decode()
        if resource not in self._objects:
            return tree
        with self._lock:
            known = self._objects[resource].get(_key(tree))
            if seen.metadata.uid in self._deleted or (known is not None and not _newer(tree, known)):
                return tree
            self._objects[resource].put(_key(tree), tree)
        self._notifier.notify(resource)
        return tree

    def _follow(self, resource: Resource, stop: Stop) -> None:
        version = ""
        while not stop.is_set():
            try:
                version = version or self._list(resource)
                version = self._watch(resource, version, stop)
                continue
            except Expired:
                version = ""
            except (ApiError, TransportError) as error:
                # after a broken connection the watch continues at its version
                version = version if isinstance(error, TransportError) else ""
                if not stop.is_set():
                    _log.debug("mirror interrupted", resource=str(resource), error=str(error))
            stop.wait(self._clock, _PAUSE)

    def _list(self, resource: Resource) -> str:
        found: dict[str, Json] = {}
        token = ""
        while True:
            page = self._client.list_page(resource, limit=_PAGE, continue_token=token)
            for item in page.items:
                tree = self._unchanged(resource, item) or item.decode()
                found[_key(tree)] = tree
            token = page.continue_token
            if not token:
                break
        with self._lock:
            objects = self._objects[resource]
            before = objects.all()
            gone = [key for key, tree in before.items() if key not in found or _uid(found[key]) != _uid(tree)]
            self._deleted.extend(_uid(before[key]) for key in gone)
            changed = [key for key, tree in found.items() if before.get(key) is not tree]
            for key in gone:
                objects.remove(key)
            for key in changed:
                objects.put(key, found[key])
        with self._synced:
            self._listed.add(resource)
            self._synced.notify_all()
        if gone or changed:
            self._notifier.notify(resource)
        return page.resource_version

    def _unchanged(self, resource: Resource, item: Object) -> Json | None:
        with self._lock:
            known = self._objects[resource].get(f"{item.metadata.namespace}/{item.metadata.name}")
        if known is None or known["metadata"]["resourceVersion"] != item.metadata.resource_version:
            return None
        return known

    def _watch(self, resource: Resource, version: str, stop: Stop) -> str:
        watch: Watch = self._client.watch(resource, resource_version=version, timeout_seconds=_WATCH_SECONDS)
        try:
            with stop.calling(watch.abort):
                for event in watch:
                    if isinstance(event.object, ApiError):
                        raise event.object
                    version = event.object.metadata.resource_version
                    self._apply(resource, event.type, event.object)
        finally:
            watch.close()
        return version

    def _apply(self, resource: Resource, kind: str, changed: Object) -> None:
        if kind == "BOOKMARK":
            return
        tree = changed.decode()
        # a resource's versions share their storage
        tree["apiVersion"] = resource.api_version
        with self._lock:
            objects = self._objects[resource]
            known = objects.get(_key(tree))
            if kind == "DELETED":
                self._deleted.append(changed.metadata.uid)
                if known is not None and _uid(known) == changed.metadata.uid:
                    objects.remove(_key(tree))
            elif known is None or _newer(tree, known):
                objects.put(_key(tree), tree)
            else:
                return
        self._notifier.notify(resource)


def _key(tree: Json) -> str:
    metadata = tree["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _uid(tree: Json) -> str:
    uid: str = tree["metadata"]["uid"]
    return uid


def _newer(tree: Json, known: Json) -> bool:
    """Compare versions: numbers of one counter, in the sandbox and in etcd."""
    return int(tree["metadata"]["resourceVersion"]) > int(known["metadata"]["resourceVersion"])
