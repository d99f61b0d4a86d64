"""Paths with placeholders for ids and names, to count requests by kind."""

import re

_IDENTIFIERS = (
    (re.compile(r"/name/[^/]+$"), "/name/{name}"),
    (re.compile(r"/transfer/[^/]+$"), "/transfer/{name}"),
    (re.compile(r"/(new|verify)/[^/]+"), r"/\1/{address}"),
    (re.compile(r"-scheduler-\d+$"), "-scheduler-{id}"),
    (re.compile(r"/\d+(?=/|$)"), "/{id}"),
)


def path_class(path: str) -> str:
    """`/pd/api/v1/store/4/label` becomes `/pd/api/v1/store/{id}/label`."""
    for pattern, name in _IDENTIFIERS:
        path = pattern.sub(name, path)
    return path
