"""`python -m cli.tidb`, and the commands `kubectl-tidb` and `kubectl_complete-tidb`."""

import sys

from controller_manager.version import project_version
from ports.starting import start


def main() -> int:
    """Run the kubectl plugin and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(project_version())  # without importing the commands, which takes longer than this
        return 0
    return start("cli.tidb.main")


def complete() -> int:
    """Run its completion and return the exit code."""
    return start("cli.tidb.completion")


if __name__ == "__main__":
    sys.exit(main())
