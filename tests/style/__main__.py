"""`python -m tests.style [PATH...]`: check the prose of the repository, and the subjects of new commits.

Prints every violation of docs/style.md in the given files and directories.
"""

import argparse
import sys
from collections.abc import Sequence

from tests.style.rules import findings, in_subject, subjects
from tests.style.texts import all_texts


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code: 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.style", description="Check the prose of the repository.")
    parser.add_argument("paths", nargs="*", help="files and directories to check; default: all")
    paths = tuple(parser.parse_args(arguments).paths or [""])
    found = [
        f"{finding.path}:{finding.line}: {finding.what}"
        for path, texts in all_texts().items()
        if path.startswith(paths)
        for finding in findings(path, texts)
    ]
    found += [f"commit {subject!r}: {what}" for subject in subjects() for what in in_subject(subject)]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
