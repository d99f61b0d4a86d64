"""A cache of the judgement "valid": an object is judged again only if it, or what the judgement read, has changed.

Another status is no such change, except for the facts that the rules read of it.
"""

from collections.abc import Callable, Sequence

from apis.problem import Problem
from kube.objects import Object
from kube.reading import Readings, without_status
from ports import effects


class Validity:
    """The last judgement of one object, in the memory of one process. Not thread-safe."""

    def __init__(self) -> None:
        self._decoded: Object | None = None
        self._valid: object = None
        self._readings = Readings()

    def knows(self, cached: Object) -> bool:
        """True if the last judgement of this very object was "valid", whatever has changed around it since."""
        return self._decoded is cached

    def problems(
        self, cached: Object, facts: object, judge: Callable[[Readings], Sequence[Problem]], *, rechecks: bool = False
    ) -> Sequence[Problem]:
        """The problems that `judge` finds; it reads caches through the given Readings, and no status of what they show.

        `facts`: what it reads of the object besides its metadata, comparable; the spec itself, because generations go
        backwards when etcd is restored. An invalid object is judged each time. With `rechecks` each object is;
        AssertionError if a judgement differs although no input does.
        """
        meta = cached.metadata
        judged = meta.uid, meta.labels, meta.annotations, meta.owner_references, meta.deletion_timestamp, facts
        is_known = self._valid == judged and self._readings.still_hold()
        if is_known and not rechecks:
            self._decoded = cached
            return ()
        readings = Readings(without_status)
        with effects.watched() as noted:
            problems = judge(readings)
        if is_known and problems:
            raise AssertionError(f"invalid on the inputs on which it was valid: {problems}")
        is_kept = not problems and not noted.count
        self._decoded, self._valid, self._readings = (cached, judged, readings) if is_kept else (None, None, readings)
        return problems
