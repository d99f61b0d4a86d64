"""Deltas applied to the store, and the resulting notifications (informers-workqueue.md FIFO-20 to FIFO-24)."""

from informers.deltas import Added, Batch, Bookmark, Deleted, Delta, Event, ReplacedAll, SyncAll, Updated
from informers.notifications import Add, Delete, Notification, Update
from informers.store import Store
from informers.tombstones import DeletedFinalStateUnknown
from kube.objects import Object


def apply_delta(store: Store, delta: Delta, is_in_initial_list: bool) -> list[Notification]:
    """Apply `delta` to `store` and return the notifications, in order. Only one thread may write to a store."""
    match delta:
        case Added() | Updated() | Deleted():
            return _change(store, (delta,), is_in_initial_list)
        case Batch(events):
            return _change(store, events, is_in_initial_list)
        case ReplacedAll(objects, resource_version):
            return _replace(store, objects, resource_version, is_in_initial_list)
        case SyncAll():
            return [Update(obj, obj) for obj in store.list()]
        case Bookmark(resource_version):
            store.bookmark(resource_version)
            return []


def _change(store: Store, events: tuple[Event, ...], initial: bool) -> list[Notification]:
    """Apply events of different objects in one step."""
    before = [store.get(event.obj) for event in events]
    store.change((event.obj, isinstance(event, Deleted)) for event in events)
    notifications = (_notification(old, event, initial) for old, event in zip(before, events, strict=True))
    return [notification for notification in notifications if notification]


def _notification(old: Object | None, event: Event, initial: bool) -> Notification | None:
    if not isinstance(event, Deleted):
        return _stored(old, event.obj, initial)
    return Delete(event.obj) if old else None


def _replace(store: Store, objects: tuple[Object, ...], version: str, initial: bool) -> list[Notification]:
    before = {obj.key: obj for obj in store.list()}
    # if a list has an object twice, its last state counts
    listed = {obj.key: obj for obj in objects}
    store.replace(listed.values(), version)
    gone = [Delete(DeletedFinalStateUnknown(key, obj)) for key, obj in before.items() if key not in listed]
    return [*gone, *(_stored(before.get(key), obj, initial) for key, obj in listed.items())]


def _stored(old: Object | None, new: Object, initial: bool) -> Notification:
    return Add(new, initial) if old is None else Update(old, new)
