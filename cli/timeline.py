"""What happens to the pods of a cluster, drawn on a line of time as SVG, and the same in words. Pure.

The drawings need no stylesheet, no script and no library: `kubectl tidb ui`, the page of `-o html` and README.md show
them. Text that users or servers may have written is escaped here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from html import escape

from apis.components import component_type
from cli.tidb.ages import length
from ports.foreign_text import printable
from rehearsal.damage import Outage
from rehearsal.forecast import Gap, Step

_SVG = "http://www.w3.org/2000/svg"
WIDTH = 720
"""The width of a drawing in pixels where no stylesheet sets another one."""

_HEAD, _LINE, _BAR = 34, 54, 10
"""Heights in pixels: of the scale, of a line, and of the bar at its end."""

_TICKS = (1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14400, 28800)
"""Seconds between two marks of the scale."""
_MOST_TICKS = 5
"""The number of marks for which a phone has room."""

_STYLE = """
.drawing { --ground: #fff; --text: #1b2430; --faint: #55606e; --line: #dfe4ea;
  --starts: #176b37; --restarts: #c98a12; --leaves: #a4161a; --lacks: #a4161a; }
@media (prefers-color-scheme: dark) { .drawing { --ground: #1a212b; --text: #e6ebf1; --faint: #a5b1bf;
  --line: #38434f; --starts: #7edb9c; --restarts: #d9a032; --leaves: #ff9b96; --lacks: #ff9b96; } }
.drawing text { font: 13px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif; fill: var(--text); }
.drawing .name { font-weight: 600; }
.drawing .scale { fill: var(--faint); }
.drawing line { stroke: var(--line); }
.drawing .ground { fill: var(--ground); }
.drawing .whole { fill: var(--line); }
.drawing .starts { fill: var(--starts); }
.drawing .restarts { fill: var(--restarts); }
.drawing .leaves { fill: var(--leaves); }
.drawing .lacks { fill: none; stroke: var(--lacks); stroke-width: 2; stroke-dasharray: 5 3; }
"""


def span(seconds: float) -> str:
    """A span in words, e.g. `90s`."""
    return length(timedelta(seconds=seconds))


def row(step: Step) -> tuple[str, str, str]:
    """When a step begins, its pod, and what happens, in words."""
    return _at(step.begins), step.pod, _end(step)


def _at(seconds: float) -> str:
    return f"{round(seconds)}s"


def _end(step: Step) -> str:
    if step.ends is None:
        return f"{step.act}, and is not Ready at the end"
    taken = span(step.ends - step.begins)
    return f"leaves within {taken}" if step.act == "leaves" else f"{step.act}, Ready after {taken}"


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasts from `begins` to `ends` (None: to the end of the timeline), in seconds.

    `kind` is an act of a step, or `lacks` for a component with too few pods.
    """

    name: str
    what: str
    kind: str
    begins: float
    ends: float | None

    @property
    def at(self) -> str:
        """When it begins, in words."""
        return _at(self.begins)


def lasting(seconds: float | None) -> str:
    """How long something lasts, in words; None: to the end."""
    return "to the end" if seconds is None else f"for {span(seconds)}"


def lack(found: Gap | Outage) -> str:
    """How many pods a component lacks, and how long, in words that follow its name."""
    return f"has {found.ready} of the {found.needed} pods that it needs, {lasting(found.seconds)}"


def bar_of_lack(found: Gap | Outage) -> Bar:
    """A bar for a time in which a component has too few pods."""
    ends = None if found.seconds is None else found.begins + found.seconds
    return Bar(component_type(found.component).title, lack(found), "lacks", found.begins, ends)


def bars_of(steps: Sequence[Step]) -> Sequence[Bar]:
    """A bar for each step."""
    return [Bar(step.pod, _end(step), step.act, step.begins, step.ends) for step in steps]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Bars on a line that lasts `least` seconds, or longer if a bar does. `now` is a moment that strips mark."""

    bars: Sequence[Bar]
    least: float = 0.0
    now: float | None = None

    def __bool__(self) -> bool:
        """True if there are bars."""
        return bool(self.bars)

    @property
    def seconds(self) -> float:
        """The length of the line."""
        return max([self.least, *(bar.ends or bar.begins for bar in self.bars)]) or 1.0

    def place(self, bar: Bar) -> tuple[float, float]:
        """Where a bar begins, and how long it is, in hundredths of the line."""
        ends = self.seconds if bar.ends is None else bar.ends
        begins, taken = 100 * bar.begins / self.seconds, 100 * (ends - bar.begins) / self.seconds
        # a step of less than a pixel is still seen
        return round(min(begins, 99.0), 1), round(max(taken, 1.0), 1)

    def strip(self, bar: Bar) -> str:
        """A bar alone, for the row of a table that says the same in words; its colour is up to the page."""
        begins, taken = self.place(bar)
        rects = f'<rect class="{escape(bar.kind)}" x="{begins}" width="{taken}" height="1"/>'
        if self.now is not None:
            x = min(round(100 * self.now / self.seconds, 1), 99.5)
            rects += f'<rect class="now" x="{x}" width="0.5" height="1"/>'
        return f'<svg viewBox="0 0 100 1" preserveAspectRatio="none">{rects}</svg>'

    def drawing(self, name: str) -> str:
        """All bars with their names and words below a scale, as one SVG named `name`.

        It is as wide as the page gives it room, and its letters do not shrink. Each bar has a text alternative.
        """
        height = _HEAD + _LINE * len(self.bars)
        opening = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" width="{WIDTH}" height="{height}" role="group"'
        )
        lines = [
            f'{opening} aria-label="{as_html(name)}">',
            f"<style>{_STYLE}</style>",
            '<rect class="ground" width="100%" height="100%" rx="8"/>',
            '<svg x="2%" width="96%" height="100%">',
            *self._scale(height),
            *(part for number, bar in enumerate(self.bars) for part in self._line(bar, _HEAD + number * _LINE)),
            "</svg>",
            "</svg>",
        ]
        return "".join(f"{line}\n" for line in lines)

    def _scale(self, height: int) -> Iterator[str]:
        """Marks of time, from the top to the bottom."""
        every = next((each for each in _TICKS if self.seconds / each <= _MOST_TICKS), self.seconds / _MOST_TICKS)
        for number in range(int(self.seconds / every) + 1):
            x = round(100 * number * every / self.seconds, 1)
            anchor = "start" if not number else "end" if x > 90 else "middle"
            yield f'<line x1="{x}%" x2="{x}%" y1="{_HEAD - 8}" y2="{height - 8}" aria-hidden="true"/>'
            mark = f'<text class="scale" x="{x}%" y="{_HEAD - 14}" text-anchor="{anchor}"'
            yield f'{mark} aria-hidden="true">{span(number * every)}</text>'

    def _line(self, bar: Bar, top: int) -> Iterator[str]:
        """A bar below its name and its words, and a text alternative."""
        begins, taken = self.place(bar)
        name, what = as_html(bar.name), as_html(bar.what)
        y = top + _LINE - _BAR - 8
        yield f'<g role="img"><title>{bar.at}: {name} {what}</title>'
        yield f'<text class="name" y="{top + 14}">{name}</text>'
        yield f'<text y="{top + 30}">{bar.at}: {what}</text>'
        yield f'<rect class="whole" y="{y}" width="100%" height="{_BAR}" rx="3"/>'
        yield f'<rect class="{as_html(bar.kind)}" x="{begins}%" y="{y}" width="{taken}%" height="{_BAR}" rx="3"/></g>'


def as_html(text: str) -> str:
    """Foreign text as it shows in HTML, on one line."""
    return escape(printable(text))
