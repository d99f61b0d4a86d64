"""`python -m tests.style [--lower | --all] [PATH...]`: check the prose of the repository against docs/style.md.

Without options, list the findings of files that have more of them than allowed.txt permits. `--lower` writes the
lower numbers of files that were cleaned. `--all` lists every finding below the given paths.
"""

import argparse
import sys
from collections.abc import Sequence

from tests.style import ratchet
from tests.style.rules import Finding, findings, in_subject, subjects
from tests.style.texts import all_texts


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code: 1 if a file has too many findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.style", description="Check the prose of the repository.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--lower", action="store_true", help="lower the numbers of files that were cleaned")
    mode.add_argument("--all", action="store_true", help="list every finding")
    parser.add_argument("paths", nargs="*", help="files and directories to list; default: all")
    options = parser.parse_args(arguments)
    found = {path: list(findings(path, texts)) for path, texts in all_texts().items()}
    allowed = ratchet.moved(ratchet.read(), frozenset(found))
    if options.lower:
        ratchet.write(ratchet.lowered(allowed, {path: len(each) for path, each in found.items()}))
        return 0
    if options.all:
        _print(
            [each for path, listed in found.items() if path.startswith(tuple(options.paths or [""])) for each in listed]
        )
        return 0
    excess = {path: listed for path, listed in found.items() if len(listed) > allowed.get(path, 0)}
    for path, listed in excess.items():
        _print(listed)
        if path in allowed:
            sys.stdout.write(f"{path}: {len(listed)} findings, at most {allowed[path]} are allowed\n")
    commits = [(subject, what) for subject in subjects() for what in in_subject(subject)]
    for subject, what in commits:
        sys.stdout.write(f"commit {subject!r}: {what}\n")
    return 1 if excess or commits else 0


def _print(listed: Sequence[Finding]) -> None:
    for path, line, what in listed:
        sys.stdout.write(f"{path}:{line}: {what}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
