"""`python -m backup_manager`, and the command `backup-manager`."""

import sys

from ports.starting import start


def main() -> int:
    """Run the program and return its exit code."""
    return start("backup_manager.main")


if __name__ == "__main__":
    sys.exit(main())
