"""`python -m cli.tidb`, and the commands `kubectl-tidb` and `kubectl_complete-tidb`."""

import sys

from ports.starting import start


def main() -> int:
    """The plugin of kubectl; its exit code."""
    return start("cli.tidb.main")


def complete() -> int:
    """Its completion; the exit code."""
    return start("cli.tidb.completion")


if __name__ == "__main__":
    sys.exit(main())
