"""The plans of workloads and other families, which a family reruns with an addition."""

from collections.abc import Iterator

from simulate.engine.plan import InvalidPlan, Plan
from simulate.families.family import Family, by_name
from simulate.families.workloads import WORKLOADS


class PlansOfOthers:
    """All workloads, and the plans of some families."""

    def __init__(self, *families: Family) -> None:
        self._families = by_name(*families)

    def named(self, name: str) -> Plan:
        """The plan of a name. Raises InvalidPlan."""
        of, _, rest = name.partition("/")
        if of in self._families:
            return self._families[of].plan(rest)
        if name not in WORKLOADS:
            known = ", ".join(f"{family}/..." for family in self._families)
            raise InvalidPlan(f"{name!r} is no workload, and none of {known}")
        return WORKLOADS[name]

    def all(self) -> Iterator[Plan]:
        """All plans of the workloads and of the families."""
        yield from WORKLOADS.values()
        for family in self._families.values():
            yield from family.plans()
