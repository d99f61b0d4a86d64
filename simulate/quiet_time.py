"""Whether something is broken right now: what may not last is not counted against the operator before that is over."""

from collections.abc import Collection, Iterable

from simulate import plan
from simulate.write_addresses import Address, address


class QuietTime:
    """Follows the faults of one plan; times are seconds from its beginning."""

    def __init__(self, faults: Iterable[plan.Fault] = ()) -> None:
        self._at_write: dict[Address, list[plan.Fault]] = {}
        self._broken: list[tuple[float, float]] = []
        """When something is broken, from and to."""
        for fault in faults:
            if where := address(fault):
                self._at_write.setdefault(where, []).append(fault)
            else:
                self._begin(fault, fault.at or 0.0)

    def wrote(self, addresses: Collection[Address], at: float) -> None:
        """The operator has sent the write of these addresses."""
        for fault in (fault for each in addresses for fault in self._at_write.pop(each, ())):
            self._begin(fault, at)

    def since(self, at: float) -> float | None:
        """Since when nothing is broken; None while something is."""
        end = max((end for begin, end in self._broken if begin <= at), default=0.0)
        return end if end <= at else None

    def _begin(self, fault: plan.Fault, at: float) -> None:
        # what is never taken back is how the world is
        self._broken.append((at, at + float(getattr(fault, "seconds", 0.0))))
