"""Text of servers, users and tools, made safe for conditions, events, logs and terminals."""

LONGEST_QUOTE = 200
"""The maximum number of characters of a server's text in a condition."""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str, *, lines: bool = False) -> str:
    """The text without characters that a terminal would obey: control characters, bidirectional marks, surrogates.

    White space becomes blanks; with `lines`, line breaks stay.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or (lines and each == "\n") else _shown(each) for each in text)


def shortened(text: str, longest: int = LONGEST_QUOTE) -> str:
    """The printable text, cut to `longest` characters."""
    # a server may send megabytes: clean only the part that is kept
    text = printable(text[: longest + 1].strip())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _shown(character: str) -> str:
    return " " if character.isspace() else _REPLACEMENT
