"""How the owner spreads tables over captures: those of nobody first, then off who stops, then evenly."""

from collections.abc import Mapping, Sequence

from sandbox.dataplane.ticdc.book import CaptureInfo

Tables = Mapping[str, Sequence[str]]
"""Tables by capture."""


def moved(tables: set[str], assigned: Tables, captures: Mapping[str, CaptureInfo], count: int) -> dict[str, list[str]]:
    """The tables of each capture after at most `count` of them have moved; those of gone captures are nobody's.

    A table that moves from a capture that lives is never without one.
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
