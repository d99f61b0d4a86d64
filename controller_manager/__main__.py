"""`python -m controller_manager`, and the commands `tidb-controller-manager` and `tidb-controller-manager-check`."""

import sys

from ports.starting import start


def main() -> int:
    """The controller-manager; its exit code."""
    return start("controller_manager.main")


def check() -> int:
    """The check of its pods; its exit code."""
    return start("controller_manager.check")


if __name__ == "__main__":
    sys.exit(main())
