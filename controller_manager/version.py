"""The version of this project."""

from importlib.metadata import version

from ports.product import DISTRIBUTION


def project_version() -> str:
    """The installed version."""
    return version(DISTRIBUTION)
