"""What admission webhooks have made of pod templates that were written. It stays: it comes back with each write.

The answer to a write tells: what still differs in it was changed in the course of that very write, by no other client.
Images that are rewritten and labels that are added to whatever makes pods are a policy of the cluster, not a contest
(`kube.contests`). What is not noted here, such as after a restart, is written once more, which changes nothing.
"""

import threading
from collections import OrderedDict
from typing import Any

import structlog

from kube.field_change import first_patched
from kube.objects import Json, Object, digest

_log = structlog.get_logger(__name__)

_REMEMBERED = 4096
"""Objects that are kept in mind; clusters come and go."""


class Admitted:
    """Of each object, what was left to write of it in the answer to a write. Safe for use by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, bytes] = OrderedDict()

    def note(self, written: Object, left: Json | None) -> None:
        """Note the answer to a write, and the patch that it would still take; None: it is as it was written."""
        uid = written.metadata.uid
        made = None if left is None else _made(written.decode(), left)
        with self._lock:
            before = self._known.pop(uid, None)
            if made is not None:
                self._known[uid] = made
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        if left is not None and made != before:
            name, change = written.metadata.name, str(first_patched(written.decode(), left))
            _log.warning("admission changes what is written", kind=written.kind, name=name, undoes=change)

    def holds(self, there: Object, patch: Json) -> bool:
        """Whether all that a patch would change of an object is a pod template that admission has made so."""
        known = self._known.get(there.metadata.uid)
        return known is not None and _is_of_template(patch) and known == _made(there.decode(), patch)


def _is_of_template(patch: Json) -> bool:
    return patch.keys() == {"spec"} and patch["spec"].keys() == {"template"}


def _made(live: Json, patch: Json) -> bytes:
    return digest([patch, _part(live, patch)])


def _part(tree: Any, of: Any) -> Any:
    """What stands where a patch would change something."""
    if isinstance(tree, dict) and isinstance(of, dict):
        return {key: _part(tree.get(key), below) for key, below in of.items()}
    return tree
