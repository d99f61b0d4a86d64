"""The differences that the sandbox may have from Kubernetes, each with its reason. Any other is a defect."""

import re

_FIELDS = (
    # the managers of fields matter only to server-side apply, which the sandbox does not offer
    r"(^|\.)metadata\.managedFields(\b|$)",
)

_PATHS = (
    # OpenAPI v2 is protobuf, which the recorder does not read; kubectl works without it
    r"^/openapi/v2",
)

# Discovery, OpenAPI and version: the sandbox serves fewer groups, and says which; only that it answers is compared
_SERVED = re.compile(r"^/(apis?|version)(\?|$)|^/openapi/|^/apis?/[^/]+(/v[^/]+)?(\?|$)")

_FIELD = re.compile("|".join(_FIELDS))
_PATH = re.compile("|".join(_PATHS))


def is_known(field: str) -> bool:
    """True if a field, by its dotted path in an answer, may differ."""
    return bool(_FIELD.search(field))


def is_left_out(path: str, event: str) -> bool:
    """True if a request or an event of its watch is not compared.

    Whether kubectl waits for a bookmark depends on timing; `test_watching` compares bookmarks.
    """
    return event == "BOOKMARK" or bool(_PATH.match(path))


def tells_what_is_served(path: str) -> bool:
    """True if an answer is about the server itself, so that its fields are not compared."""
    return bool(_SERVED.match(path))
