"""Paths that begin with `~`."""

from pathlib import Path


def expanded(path: str) -> Path:
    """The path with a leading `~` or `~user` replaced; unchanged if the home directory is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
