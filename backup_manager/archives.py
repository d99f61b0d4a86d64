"""Archives of a directory, written to and read from a volume (backup.md 7.9). A file with the final name is
complete.
"""

import contextlib
import gzip
import shutil
import tarfile
import zlib
from pathlib import Path

from backup_manager.outcomes import Stopped
from ports.stopping import Stop

SUFFIX = ".tgz"

_LEVEL = 6
"""gzip's own default; Python's, 9, takes three times as long for 2 % less."""
_CHUNK = 1 << 20


class BadArchive(Exception):
    """Raised for a file that is not an archive of a directory, or would extract to another place."""


def pack(directory: Path, archive: Path, stop: Stop) -> None:
    """Archive a directory under its name. Raises OSError, Stopped."""

    def checked(member: tarfile.TarInfo) -> tarfile.TarInfo:
        _go_on(stop)
        return member

    part = _part_of(archive)
    with tarfile.open(part, "w:gz", compresslevel=_LEVEL) as tar:
        tar.add(directory, directory.name, filter=checked)
    part.replace(archive)


def unpack(archive: Path, target: Path, stop: Stop) -> None:
    """Extract an archive of a directory or of its files. Raises BadArchive, OSError, Stopped."""
    part = _part_of(target)
    remove(part)
    part.mkdir(parents=True)
    try:
        with gzip.open(archive) as file, tarfile.open(fileobj=file, mode="r|") as tar:
            for member in tar:
                _go_on(stop)
                _extract(tar, member, part)
            while file.read(_CHUNK):
                pass  # gzip's checksum of the content comes last
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise BadArchive(f"{archive.name}: {error}") from error
    inside = list(part.iterdir())
    if len(inside) == 1 and inside[0].is_dir():
        inside[0].replace(target)
        part.rmdir()
    else:
        part.replace(target)


def remove(path: Path) -> None:
    """Remove a file or directory and its unfinished form, if they exist. Raises OSError."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if not path.name.endswith(_PART):
        remove(_part_of(path))


def below(volume: Path, path: str) -> Path:
    """A path on the volume. Raises BadArchive for one outside it."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise BadArchive(f"{path!r} is no path below {volume}")
    return volume.joinpath(*parts)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Extract only files and directories below the target: Dumpling writes nothing else.

    tarfile's own filter for data came with Python 3.11.4.
    """
    path = (target / member.name.lstrip("/")).resolve()
    if not path.is_relative_to(target.resolve()):
        raise BadArchive(f"{member.name!r} leads out of the directory")
    content = tar.extractfile(member) if member.isfile() else None
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with content, path.open("wb") as file:
            shutil.copyfileobj(content, file)
    elif member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    else:
        raise BadArchive(f"{member.name!r} is neither a file nor a directory")


_PART = ".part"


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{_PART}")


def _go_on(stop: Stop) -> None:
    if stop.is_set():
        raise Stopped


def size_of(path: Path) -> int:
    """The size of a file in bytes; 0 if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
