"""The alerts and the dashboard that the operator provides for monitors (`manifests/monitoring`)."""

import base64
import functools
from importlib import resources


@functools.cache
def rules() -> str:
    """The alerts on clusters and on the operator."""
    return _text("alerts.yaml")


@functools.cache
def dashboard() -> str:
    """The dashboard of the operator."""
    return _text("dashboard.json")


def _text(name: str) -> str:
    return resources.files("manifests").joinpath("monitoring", name).read_text(encoding="utf-8")


def in_base64(text: str) -> str:
    """A text in base64, as in a Secret."""
    return base64.b64encode(text.encode()).decode()


def from_base64(value: str) -> str:
    """The text of a value in a Secret, without a line end, which editors add."""
    return base64.b64decode(value).decode("utf-8", "replace").rstrip("\r\n")
