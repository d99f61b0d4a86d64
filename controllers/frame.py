"""What surrounds every sync of an object, whichever controller runs it.

key ─┬─ another worker acts for the object          → retry soon
     ├─ deleted, or of another process              → the controller deletes its memory
     ├─ the cache does not show the last write yet  → retry soon
     └─ act; of an object that is only observed, nothing is written
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from controllers.controller import Result
from controllers.key_locks import RETRY_AFTER
from controllers.own_write import OwnWrite
from controllers.runtime import Runtime
from kube.objects import Object
from kube.resources import Resource
from ports.asking import asking_for

BUSY = Result(requeue_after=RETRY_AFTER, tried=False)
"""The retry while another worker acts for the object."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn to act for an object; `owner` is None if it is gone or belongs to another process."""

    owner: Object | None


@contextmanager
def turn_of(
    runtime: Runtime, resource: Resource, key: str, look_up: Callable[[str], Object | None]
) -> Iterator[Turn | None]:
    """Let no other controller of this process act for an object during the block; None while another one does.

    `look_up` is called under the lock of the object, so that it finds what the last sync has written to a cache.
    """
    with runtime.key_locks.try_lock(resource, key) as mine:
        if not mine:
            yield None
            return
        owner = look_up(key) if runtime.key_locks.owns(resource, key) else None
        with runtime.observed.sync_of(resource, key, owner), asking_for(key.rpartition("/")[0]):
            yield Turn(owner)


def wait_for_cache(runtime: Runtime, resource: Resource, owner: Object, own_write: OwnWrite) -> Result | None:
    """The retry while the cache does not show what this process last wrote to the object. Raises RequeueError."""
    meta = owner.metadata
    wait = own_write.wait(owner, runtime.clock, partial(runtime.client.find, resource, meta.name, meta.namespace))
    return Result(requeue_after=wait, tried=False) if wait else None
