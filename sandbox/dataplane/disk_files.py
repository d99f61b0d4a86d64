"""Files on a simulated volume, or objects in a simulated bucket, below one prefix, with their faults."""

import errno
from collections.abc import Mapping, Sequence

from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.processes import Disk, DiskTrouble

_SLOW = 5.0
"""Seconds of a call under SLOW."""
_OF_ALL = {
    DiskTrouble.FAIL: OSError(errno.EIO, "InternalError: we encountered an internal error, please try again"),
    DiskTrouble.DENY: PermissionError(errno.EACCES, "AccessDenied: access denied"),
}
_OF_WRITES = {
    **_OF_ALL,
    DiskTrouble.FULL: OSError(errno.ENOSPC, "no space left on device"),
    DiskTrouble.TEAR: OSError(errno.EIO, "the connection ended in the middle of the object"),
}


class DiskFiles:
    """A command's access to the files of a disk; each call takes time. All methods raise OSError."""

    def __init__(self, disk: Disk, prefix: str, surroundings: Surroundings) -> None:
        self.disk = disk
        self.below = f"{prefix}/" if prefix else ""
        """The prefix of paths on the disk."""
        self._surroundings = surroundings

    def sizes(self) -> Mapping[str, int]:
        """All files with their sizes in bytes."""
        self._reach(_OF_ALL)
        skip = len(self.below)
        there = sorted(self.disk.objects.items())
        return {path[skip:]: len(content) for path, content in there if path.startswith(self.below)}

    def names(self) -> Sequence[str]:
        """All files."""
        return list(self.sizes())

    def read(self, name: str) -> bytes:
        """The content of a file. Raises FileNotFoundError."""
        self._reach(_OF_ALL)
        try:
            return self.disk.objects[self.below + name]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, f"{name} is not there") from None

    def write(self, name: str, content: bytes) -> None:
        """Write a file, replacing an existing one."""
        try:
            self._reach(_OF_WRITES)
        except OSError:
            if self.disk.trouble is DiskTrouble.TEAR:
                self.disk.objects[self.below + name] = content[: len(content) // 2]
            raise
        self.disk.objects[self.below + name] = content

    def delete(self, names: Sequence[str]) -> None:
        """Remove files; missing ones are not an error."""
        self._reach(_OF_ALL)
        for name in names:
            self.disk.objects.pop(self.below + name, None)

    def _reach(self, troubles: Mapping[DiskTrouble, OSError]) -> None:
        trouble = self._surroundings.reach(lambda: self.disk.trouble)
        if trouble is DiskTrouble.SLOW:
            self._surroundings.stop.wait(self._surroundings.clock, _SLOW)
        elif trouble is not None and trouble in troubles:
            error = troubles[trouble]
            raise type(error)(*error.args)
