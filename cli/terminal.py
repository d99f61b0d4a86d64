"""Foreign text on its way to a terminal, which must obey none of it; styles are the command's own."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from ports.foreign_text import printable


@dataclass(frozen=True, slots=True)
class Printable:
    """Something that rich renders, in printable characters only."""

    inside: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """See rich."""
        for segment in console.render(self.inside, options):
            yield segment if segment.control else Segment(printable(segment.text, lines=True), segment.style)


def escaped(text: str) -> str:
    """A document of JSON with escapes for all characters that are not printable, which mean the same there."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each if each == "\n" or each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
