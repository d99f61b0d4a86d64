"""The writes of plans in a file, to compare two commits (`python -m simulate traces`).

A refactoring changes no write of any plan: neither its place, nor its target, nor its body. Versions and times are left
out, because they always differ. UIDs and other random ids are numbered by first appearance.
"""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import zip_longest
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from simulate.engine.calls import Call, Port

Writes = tuple[str, ...]
"""The writes of one plan in order: actor, method and target, and the body on a second line."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![\w.])\d{15,20}(?![\w.])")
"""UIDs, and random ids of PD, TiKV and DM."""
_STAMP = re.compile(r"\.[0-9a-f]{16}\b")
"""The suffix of an event's name."""
_VERSION = "resourceVersion"

_SHOWN = 10
"""The number of plans whose first difference a comparison shows."""


class WriteTrace:
    """Collects the writes of one plan."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self._ids: dict[str, str] = {}

    def note(self, call: Call) -> None:
        """Add a write. Reads are ignored."""
        if call.is_write:
            self.writes.append(self._stable(f"{call.actor}: {_target(call)}\n{_body(call.request.body or b'')}"))

    def _stable(self, text: str) -> str:
        text = _STAMP.sub(".<stamp>", _TIME.sub("<time>", text))
        return _ID.sub(lambda found: self._ids.setdefault(found[0], f"<id {len(self._ids) + 1}>"), text)


def _target(call: Call) -> str:
    """The method and the target, with the query, which marks dry runs."""
    query = urlsplit(call.request.url).query
    return str(call) if call.port is Port.DATA_PLANE or not query else f"{call}?{query}"


def _body(body: bytes) -> str:
    """A body with sorted keys and without versions; unchanged if it is not JSON."""
    try:
        tree = json.loads(body, object_hook=_without_version)
    except ValueError:
        return body.decode("utf-8", "replace")
    return json.dumps(tree, sort_keys=True, ensure_ascii=False)


def _without_version(tree: dict[str, object]) -> dict[str, object]:
    tree.pop(_VERSION, None)
    return tree


# The file


class _File(msgspec.Struct):
    """Each distinct write once, and the writes of each plan by number."""

    writes: list[str]
    plans: dict[str, list[int]]


def save(path: Path, traces: Mapping[str, Writes]) -> None:
    """Write traces by the names of their plans. Equal traces give equal files. Raises OSError."""
    numbers: dict[str, int] = {}
    plans = {name: [numbers.setdefault(write, len(numbers)) for write in traces[name]] for name in sorted(traces)}
    content = msgspec.json.encode(_File(list(numbers), plans))
    path.write_bytes(gzip.compress(content, mtime=0))


def load(path: Path) -> dict[str, Writes]:
    """The traces in a file. Raises OSError, msgspec.DecodeError."""
    content = msgspec.json.decode(gzip.decompress(path.read_bytes()), type=_File)
    return {name: tuple(content.writes[number] for number in plan) for name, plan in content.plans.items()}


# The comparison


def family_of(plan: str) -> str:
    """The family or workload in a plan's name."""
    return plan.partition("/")[0]


def compared(before: Mapping[str, Writes], after: Mapping[str, Writes]) -> Iterator[str]:
    """The differences in lines: families first, then the first differing write of some plans. None if equal."""
    both = sorted(before.keys() & after.keys())
    different = [name for name in both if before[name] != after[name]]
    yield from _by_family(both, different)
    for title, names in (("only before", before.keys() - after.keys()), ("only after", after.keys() - before.keys())):
        if names:
            yield f"{title}: {len(names)} plans, such as {min(names)}"
    for name in different[:_SHOWN]:
        yield from _first_difference(name, before[name], after[name])
    if len(different) > _SHOWN:
        yield f"and {len(different) - _SHOWN} more plans: {', '.join(different[_SHOWN:])}"


def _by_family(plans: Iterable[str], different: Iterable[str]) -> Iterator[str]:
    changed = Counter(map(family_of, different))
    for family, count in sorted(Counter(map(family_of, plans)).items()):
        if changed[family]:
            yield f"{family}: {changed[family]} of {count} plans differ"


def _first_difference(name: str, before: Writes, after: Writes) -> Iterator[str]:
    number, one, other = next(
        (number, one, other)
        for number, (one, other) in enumerate(zip_longest(before, after, fillvalue=""), 1)
        if one != other
    )
    yield f"\n{name}: {_summary(before, after)}; first at write {number}"
    yield from unified_diff(_lines(one), _lines(other), "before", "after", n=2, lineterm="")


def _summary(before: Writes, after: Writes) -> str:
    gone, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
    if not gone and not new:
        return "the same writes in another order"
    return f"{gone.total()} writes only before, {new.total()} only after"


def _lines(write: str) -> Sequence[str]:
    """A write in readable form."""
    if not write:
        return ["(no more writes)"]
    head, _, body = write.partition("\n")
    try:
        return [head, *json.dumps(json.loads(body), indent=2, ensure_ascii=False).splitlines()]
    except ValueError:
        return [head, *body.splitlines()]
