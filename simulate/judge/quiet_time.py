"""Quiet times: temporary violations count against the operator only after all faults are over."""

from collections.abc import Collection, Iterable

from simulate.engine import plan
from simulate.engine.write_addresses import Address, address


class QuietTime:
    """Follows the faults of one plan; times are in seconds from its start."""

    def __init__(self, faults: Iterable[plan.Fault] = ()) -> None:
        self._at_write: dict[Address, list[plan.Fault]] = {}
        self._broken: list[tuple[float, float]] = []
        """The intervals with faults."""
        for fault in faults:
            if where := address(fault):
                self._at_write.setdefault(where, []).append(fault)
            else:
                self._begin(fault, fault.at or 0.0)

    def wrote(self, addresses: Collection[Address], at: float) -> None:
        """Record that the operator has sent a write with these addresses."""
        for fault in (fault for each in addresses for fault in self._at_write.pop(each, ())):
            self._begin(fault, at)

    def since(self, at: float) -> float | None:
        """Since when no fault is active; None while one is."""
        end = max((end for begin, end in self._broken if begin <= at), default=0.0)
        return end if end <= at else None

    def _begin(self, fault: plan.Fault, at: float) -> None:
        # a permanent fault is the normal state of the world
        self._broken.append((at, at + float(getattr(fault, "seconds", 0.0))))
