"""The owner's distribution of tables over captures: unassigned ones first, then off stopping captures, then evenly."""

from collections.abc import Mapping, Sequence

from sandbox.dataplane.ticdc.book import CaptureInfo

Tables = Mapping[str, Sequence[str]]
"""Tables by capture."""


def moved(tables: set[str], assigned: Tables, captures: Mapping[str, CaptureInfo], count: int) -> dict[str, list[str]]:
    """The tables of each capture after at most `count` moves; tables of missing captures are unassigned.

    A table that moves from a living capture is never unassigned.
    """
    found = {each: [table for table in assigned.get(each, ()) if table in tables] for each in sorted(captures)}
    takers = [each for each in found if not captures[each].stopping]
    if not takers:
        return found
    homeless = sorted(tables.difference(*found.values()))
    for _ in range(count):
        fewest = min(takers, key=lambda each: len(found[each]))
        if homeless:
            found[fewest].append(homeless.pop(0))
        elif stopping := next((each for each in found if each not in takers and found[each]), ""):
            found[fewest].append(found[stopping].pop())
        else:
            most = max(takers, key=lambda each: len(found[each]))
            if len(found[most]) - len(found[fewest]) < 2:
                break
            found[fewest].append(found[most].pop())
    return found
