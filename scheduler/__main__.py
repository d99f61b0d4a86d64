"""`python -m scheduler`, and the command `tidb-scheduler`."""

import sys

from ports.starting import start


def main() -> int:
    """Run the program and return its exit code."""
    return start("scheduler.main")


if __name__ == "__main__":
    sys.exit(main())
