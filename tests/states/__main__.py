"""`python -m tests.states` writes the diagrams into docs/states.md; with `--check` it fails if they are outdated."""

import sys

from tests.states.diagrams import DOCUMENT, with_diagrams


def main() -> int:
    """The exit code."""
    before = DOCUMENT.read_text(encoding="utf-8")
    after = with_diagrams(before)
    if "--check" in sys.argv[1:]:
        if before != after:
            sys.stderr.write(f"{DOCUMENT} is outdated: make format\n")
        return int(before != after)
    DOCUMENT.write_text(after, encoding="utf-8")
    return 0


sys.exit(main())
