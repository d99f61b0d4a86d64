"""Text that a server, a user or a tool wrote, made safe to show in a condition, an event, a log line, on a terminal."""

LONGEST_QUOTE = 200
"""Characters of what a server says that are worth a place in a condition."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, *, lines: bool = False) -> str:
    """The text without characters that a terminal would obey: control characters, marks of direction, surrogates.

    White space becomes blanks; `lines` keeps the ends of lines.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or (lines and each == "\n") else _shown(each) for each in text)


def shortened(text: str, longest: int = LONGEST_QUOTE) -> str:
    """The printable text, cut to a number of characters."""
    # a server may send megabytes: only what is kept needs to be looked at
    text = printable(text[: longest + 1].strip())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _shown(character: str) -> str:
    return " " if character.isspace() else _REPLACEMENT
