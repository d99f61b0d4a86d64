"""Comparing resource versions, where a rule allows it (informers-workqueue.md MUT-3, EXP-3)."""


def as_number(resource_version: str) -> int | None:
    """The version as a number of any length; None when it is none, and then compares with nothing."""
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else None
