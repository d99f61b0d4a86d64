"""Changes that admission webhooks make to pod templates. The operator leaves them, because each write would return
them.

A difference in the answer to a write was made during that write, so admission made it, not another client. Rewritten
images and added labels are a policy of the Kubernetes cluster, not a contest (`kube.contests`). A difference that is
not recorded here, e.g. after a restart, is written once more, which changes nothing.
"""

import threading
from typing import Any

from kube.field_change import first_patched
from kube.objects import Json, Object, digest
from ports.ageing import Ageing
from ports.lazy_log import get_logger

_log = get_logger(__name__)

_REMEMBERED = 4096
"""The number of objects to remember; clusters are created and deleted."""


class Admitted:
    """Remembers, per object, the difference that was left in the answer to a write. Thread-safe.

    Without it a Deployment is patched 12 times in ten minutes, not once (bench/memories.json).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: Ageing[str, bytes] = Ageing(most=_REMEMBERED)

    def note(self, written: Object, left: Json | None) -> None:
        """Record the answer to a write and the patch that still differs; None if the object is exactly as written."""
        uid = written.metadata.uid
        made = None if left is None else _fingerprint(written.decode(), left)
        with self._lock:
            before = self._known.drop(uid)
            if made is not None:
                self._known.note(uid, made)
        if left is not None and made != before:
            name, change = written.metadata.name, str(first_patched(written.decode(), left))
            _log.warning("admission changes what is written", kind=written.kind, name=name, undoes=change)

    def holds(self, there: Object, patch: Json) -> bool:
        """True if a patch would only undo what admission made of a pod template."""
        known = self._known.get(there.metadata.uid)
        return known is not None and _is_of_template(patch) and known == _fingerprint(there.decode(), patch)


def _is_of_template(patch: Json) -> bool:
    return patch.keys() == {"spec"} and patch["spec"].keys() == {"template"}


def _fingerprint(live: Json, patch: Json) -> bytes:
    return digest([patch, _part(live, patch)])


def _part(tree: Any, of: Any) -> Any:
    """The values that a patch would replace."""
    if isinstance(tree, dict) and isinstance(of, dict):
        return {key: _part(tree.get(key), below) for key, below in of.items()}
    return tree
