"""`python -m cli`, and the command `tidb-operator`."""

import sys

from ports.starting import start


def main() -> int:
    """Run the program and return its exit code."""
    return start("cli.main")


if __name__ == "__main__":
    sys.exit(main())
