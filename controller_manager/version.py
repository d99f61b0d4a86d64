"""The version of this project, for whoever says it."""

from importlib.metadata import version


def project_version() -> str:
    """As it was installed."""
    return version("tidb-operator-py")
