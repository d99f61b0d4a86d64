"""What comes with the operator for monitors: its own alerts and its own dashboard (`manifests/monitoring`)."""

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
    """A text as a Secret holds it."""
    return base64.b64encode(text.encode()).decode()


def from_base64(value: str) -> str:
    """The text that a Secret holds, without the line end that editors leave."""
    return base64.b64decode(value).decode("utf-8", "replace").rstrip("\r\n")
