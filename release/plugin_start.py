"""The start of the single file of `kubectl tidb`, a zip archive with the program and what it needs.

Python cannot load compiled modules from an archive, so the first start unpacks it below $XDG_CACHE_HOME, and later
starts use the unpacked files. This file runs before that, so it imports the standard library alone.
"""

import os
import sys

VERSION = "@VERSION@"
DIGEST = "@DIGEST@"

_COMPLETION = "kubectl_complete-tidb"


def main() -> int:
    """Run the plugin, or its completion if the file is called by that name; the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(VERSION)
        return 0
    program = os.path.basename(sys.argv[0])
    root = unpacked(sys.path[0])
    sys.path[0:1] = [root, os.path.join(root, native())]
    from cli.tidb.__main__ import complete  # noqa: PLC0415
    from cli.tidb.__main__ import main as plugin  # noqa: PLC0415

    return complete() if program == _COMPLETION else plugin()


def native() -> str:
    """The directory of the modules that are compiled for this Python and this machine."""
    machine = os.uname().machine.lower().replace("amd64", "x86_64").replace("aarch64", "arm64")
    return f"native/{sys.implementation.cache_tag}-{sys.platform}-{machine}"


def unpacked(archive: str) -> str:
    """The directory that holds the content of the archive; it is unpacked if it is not there yet."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    target = os.path.join(cache, "kubectl-tidb", f"{VERSION}-{DIGEST}")
    if os.path.isdir(target):
        return target
    import tempfile  # noqa: PLC0415
    import zipfile  # noqa: PLC0415

    parent = os.path.dirname(target)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    # a name of its own, and one rename: a second start at the same time finds all or nothing
    with tempfile.TemporaryDirectory(dir=parent) as own, zipfile.ZipFile(archive) as source:
        whole = os.path.join(own, "whole")
        source.extractall(whole)
        try:
            os.rename(whole, target)
        except OSError:
            if not os.path.isdir(target):
                raise
    return target


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  (an older Python may run this file)
        sys.exit("kubectl tidb needs Python 3.11 or newer")
    sys.exit(main())
