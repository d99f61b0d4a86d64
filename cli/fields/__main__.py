"""`python -m cli.fields [--check]`: write docs/fields.md, or report that it is outdated."""

import argparse
import sys
from pathlib import Path

from cli.fields import table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fields.md"


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m cli.fields", description="Write docs/fields.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    check: bool = parser.parse_args(arguments).check
    if wrong := table.defects():
        sys.stderr.write("\n".join([*wrong, ""]))
        return 1
    text = table.page()
    if not check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{PAGE} is not up to date; run `python -m cli.fields`\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
