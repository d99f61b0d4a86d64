"""A cache of the judgement "valid": an object is judged again only if it, or what the judgement read, has changed."""

from collections.abc import Callable, Sequence

from apis.problem import Problem
from kube.objects import Object
from kube.reading import Readings
from ports import effects


class Validity:
    """The last judgement of one object, in the memory of one process. Not thread-safe."""

    def __init__(self) -> None:
        self._valid: Object | None = None
        self._readings = Readings()

    def knows(self, cached: Object) -> bool:
        """True if the last judgement of this very object was "valid", whatever has changed around it since."""
        return self._valid is cached

    def problems(self, cached: Object, judge: Callable[[Readings], Sequence[Problem]]) -> Sequence[Problem]:
        """The problems that `judge` finds; it reads caches through the given Readings.

        An invalid object is judged each time.
        """
        if self._valid is cached and self._readings.still_hold():
            return ()
        readings = Readings()
        with effects.watched() as noted:
            problems = judge(readings)
        self._valid, self._readings = None if problems or noted.count else cached, readings
        return problems
