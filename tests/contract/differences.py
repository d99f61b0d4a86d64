"""The differences that the sandbox may have from Kubernetes, each with its reason. Any other is a defect."""

import re

_FIELDS = (
    # Which manager set which field serves server-side apply only, which the sandbox does not offer
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
    """Whether a field, by its dotted path in an answer, is one that may differ."""
    return bool(_FIELD.search(field))


def is_left_out(path: str, event: str) -> bool:
    """Whether a request or an event of its watch is not compared.

    Whether kubectl stays for a bookmark is a matter of moments; `test_watching` compares them.
    """
    return event == "BOOKMARK" or bool(_PATH.match(path))


def tells_what_is_served(path: str) -> bool:
    """Whether an answer speaks of the server itself, so that its fields are not compared."""
    return bool(_SERVED.match(path))
