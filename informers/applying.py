"""Applying a delta to the store, and what handlers are to be told of it (informers-workqueue.md FIFO-20 to FIFO-24)."""

from informers.deltas import Added, Bookmark, Deleted, Delta, ReplacedAll, SyncAll, Updated
from informers.notifications import Add, Delete, Notification, Update
from informers.store import Store
from informers.tombstones import DeletedFinalStateUnknown
from kube.objects import Object


def apply_delta(store: Store, delta: Delta, is_in_initial_list: bool) -> list[Notification]:
    """Bring `store` up to date and return the notifications, in order. Only one thread may write to the store."""
    match delta:
        case Added(obj) | Updated(obj):
            notification = _stored(store.get(obj), obj, is_in_initial_list)
            store.update(obj)
            return [notification]
        case Deleted(obj):
            known = store.get(obj) is not None
            store.delete(obj)
            return [Delete(obj)] if known else []
        case ReplacedAll(objects, resource_version):
            return _replace(store, objects, resource_version, is_in_initial_list)
        case SyncAll():
            return [Update(obj, obj) for obj in store.list()]
        case Bookmark(resource_version):
            store.bookmark(resource_version)
            return []


def _replace(store: Store, objects: tuple[Object, ...], version: str, initial: bool) -> list[Notification]:
    before = {obj.key: obj for obj in store.list()}
    store.replace(objects, version)
    listed = {obj.key for obj in objects}
    gone = [Delete(DeletedFinalStateUnknown(key, obj)) for key, obj in before.items() if key not in listed]
    return [*gone, *(_stored(before.get(obj.key), obj, initial) for obj in objects)]


def _stored(old: Object | None, new: Object, initial: bool) -> Notification:
    return Add(new, initial) if old is None else Update(old, new)
