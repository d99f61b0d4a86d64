"""Programs read every text of a spec as that text: nothing runs, and their input has no additions.

Each text of a spec of each kind is replaced by texts that mean something in a shell, in TOML, YAML, SQL or a URL. The
objects, parsed as their readers parse them, differ from the objects of a harmless text only in that text.
`GENERATED_TEXTS=all` is every text at every place, a part of `make simulate`.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kube.objects import Json
from kube.resources import TIDB_CLUSTERS, TIDB_MONITORS, Resource
from member.startscript import fragments
from simulate.manifests.rich_specs import KINDS
from tests.security.meaningful_texts import HARMLESS, OPTIONS, TEXTS
from tests.security.parsed_objects import Parser, has_built, replaced
from tests.security.shell_texts import CANARY, SHELLS, Room
from tests.security.spec_objects import objects_of
from tests.security.spec_texts import Place, places

_WORDS = frozenset(
    {
        Place(TIDB_CLUSTERS, ("tidb", "arguments", 0)),
        Place(TIDB_MONITORS, ("prometheus", "config", "commandOptions", 0)),
    }
)
"""Fields in which white space separates words and `$NAME` is a variable, as in v1.6 (docs/security.md)."""

_URL_FIELDS = frozenset({"endpoint", "url", "proxyUrl", "pdAddresses", "kubePrometheusURL", "alertmanagerURL"})
"""Fields that are whole URLs: the user may use their syntax."""

_ALL = os.environ.get("GENERATED_TEXTS") == "all"
_EVERY_PLACE, _EVERY_TEXT = (1, 1) if _ALL else (13, 23)
"""One in this many places is tried, each with one in this many texts."""
_PARTS = 12 if _ALL else 1
"""The places of a kind are divided into this many tests."""


_VARIABLE = re.compile(r"\$(?:[A-Za-z_]|\((?:POD|NAME))")
"""Part of a text in `_WORDS` that the pod's environment replaces."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A text at a place; `behind`: after the text that the spec has."""

    place: Place
    text: str
    behind: bool

    def __str__(self) -> str:
        return f"{self.place}: {self.text!r}"

    def objects(self) -> Mapping[str, Json]:
        """The objects of the spec; none where it is refused."""
        return objects_of(self.place.kind, self.place.spec_with(self.text, behind=self.behind))


class _Calm:
    """The objects of a harmless text, each parsed once for a shell."""

    def __init__(self, place: Place, *, behind: bool) -> None:
        self.objects = _Case(place, HARMLESS, behind).objects()
        self._parsed: dict[tuple[str, str], Any] = {}

    def parsed(self, name: str, parser: Parser) -> Any:
        """An object as programs read it."""
        key = (name, parser.shell)
        if key not in self._parsed:
            self._parsed[key] = parser.parsed(self.objects[name])
        return self._parsed[key]


def test_places_are_found_in_specs_and_in_definitions() -> None:
    found = places(TIDB_MONITORS)
    assert Place(TIDB_MONITORS, ("externalLabels", "region")) in found
    assert Place(TIDB_MONITORS, ("externalLabels", "region"), is_key=True) in found
    assert Place(TIDB_MONITORS, ("thanos", "routePrefix")) in found


def test_detects_a_value_without_quotes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = Place(TIDB_CLUSTERS, ("tikv", "dataSubDir"))
    case = _Case(place, f"q7$({CANARY})7q", behind=True)
    parsers = [Parser(Room(tmp_path), "dash")]
    assert [] == list(_problems(case, _Calm(place, behind=True), parsers))
    monkeypatch.setattr(fragments, "quoted", str)
    assert [f"{case} in ConfigMap m-tikv-, read in dash"] == list(_problems(case, _Calm(place, behind=True), parsers))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.timeout(1200 if _ALL else 300)
@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_programs_read_texts_of_specs_unchanged(kind: Resource, part: int, tmp_path: Path) -> None:
    room = Room(tmp_path)
    parsers = [Parser(room, shell) for shell in SHELLS]
    assert [] == [problem for case, calm in _cases(kind, part) for problem in _problems(case, calm, parsers)]


def _cases(kind: Resource, part: int) -> Iterator[tuple[_Case, _Calm]]:
    """Texts at places whose text the operator embeds in others, each with the objects of a harmless text there."""
    for number, place in enumerate(places(kind)[part :: _PARTS * _EVERY_PLACE]):
        calm = {behind: _Calm(place, behind=behind) for behind in (True, False)}
        behind = bool(calm[True].objects)
        value = place.value_in(place.spec_with(HARMLESS, behind=behind))
        if not has_built(list(calm[behind].objects.values()), HARMLESS, value):
            continue
        cases = [_Case(place, text, behind) for text in TEXTS if not _means_more(place, text)]
        cases += [_Case(place, text, behind=False) for text in OPTIONS]
        yield from ((case, calm[case.behind]) for case in cases[number % _EVERY_TEXT :: _EVERY_TEXT])


def _means_more(place: Place, text: str) -> bool:
    """True if a text is more than a value there: words, a variable, a directory below the bucket, a part of a URL."""
    if place in _WORDS:
        return len(text.split()) > 1 or _VARIABLE.search(text) is not None
    if _URL_FIELDS.isdisjoint(place.way):
        return place.way[-1] in ("bucket", "container") and "/" in text
    return not text.isprintable() or not set("/?#%&+;").isdisjoint(text)


def _problems(case: _Case, calm: _Calm, parsers: Sequence[Parser]) -> Iterator[str]:
    """The differences between the parsed text and the harmless one; nothing for a refused spec."""
    for name, tree in case.objects().items():
        if name not in calm.objects:
            yield f"{case} makes {name}"
        elif tree != calm.objects[name]:
            yield from (
                f"{case} in {name}, read in {parser.shell}"
                for parser in parsers
                if replaced(parser.parsed(tree), case.text, HARMLESS) != calm.parsed(name, parser)
            )
