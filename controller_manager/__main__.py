"""`python -m controller_manager`, and the commands `tidb-controller-manager` and `tidb-controller-manager-check`."""

import sys

from ports.starting import start


def main() -> int:
    """Run the controller-manager and return its exit code."""
    return start("controller_manager.main")


def check() -> int:
    """Check its pods and return the exit code."""
    return start("controller_manager.check")


if __name__ == "__main__":
    sys.exit(main())
