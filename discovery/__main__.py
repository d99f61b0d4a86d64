"""`python -m discovery`, and the command `tidb-discovery`."""

import sys

from ports.starting import start


def main() -> int:
    """Run the program and return its exit code."""
    return start("discovery.main")


if __name__ == "__main__":
    sys.exit(main())
