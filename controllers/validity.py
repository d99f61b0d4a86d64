"""What was found valid is not judged again while it is the same, and so is what it was judged by."""

from collections.abc import Callable, Sequence

from apis.problem import Problem
from kube.objects import Object
from kube.reading import Readings
from ports import effects


class Validity:
    """That of one object, as one process knows it. For one thread at a time."""

    def __init__(self) -> None:
        self._valid: Object | None = None
        self._readings = Readings()

    def problems(self, cached: Object, judge: Callable[[Readings], Sequence[Problem]]) -> Sequence[Problem]:
        """What `judge` finds wrong with an object; it notes what it reads. What is wrong is judged anew each time."""
        if self._valid is cached and self._readings.still_hold():
            return ()
        readings = Readings()
        with effects.watched() as noted:
            found = judge(readings)
        self._valid, self._readings = None if found or noted.count else cached, readings
        return found
