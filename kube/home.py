"""Paths that begin with `~`."""

from pathlib import Path


def expanded(path: str) -> Path:
    """The path with a leading `~` or `~user` replaced; as it is where nobody knows that user's home directory."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
