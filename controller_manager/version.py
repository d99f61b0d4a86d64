"""The version of this project, for whoever says it."""

from importlib.metadata import version

from ports.product import DISTRIBUTION


def project_version() -> str:
    """As it was installed."""
    return version(DISTRIBUTION)
