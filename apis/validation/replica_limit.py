"""The limit of replicas: a typing error must not create a million pods. v1.6 has no limit."""

from collections.abc import Generator, Mapping

from apis.problem import Problem

MAX_REPLICAS = "tidb.pingcap.com/max-replicas"
"""Annotation: how many replicas a component may have. Ours, unknown to v1.6."""

_AT_MOST = 1000


def limit_of(annotations: Mapping[str, str]) -> Generator[Problem, None, int]:
    """Return the limit of an object with these annotations; yield a problem if their value is invalid."""
    text = annotations.get(MAX_REPLICAS)
    if text is None:
        return _AT_MOST
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        yield Problem(f'metadata.annotations["{MAX_REPLICAS}"]', text, "must be a whole number, such as 2000")
        return _AT_MOST
    return int(text)


def beyond(limit: int, wanted: int, field: str, kind: str) -> Problem:
    """The problem of a field above the limit."""
    way_out = f"if so many are meant, annotate the {kind} with {MAX_REPLICAS}={wanted}"
    return Problem(field, wanted, f"must be at most {limit}; {way_out}")
