"""The domain under which a start script registers its pod (objects.md 7.4, 7.6), in v1.6's scripts and in new ones."""

import re

_DOMAIN = r"(?:\.([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?))?"
_NAMED = re.compile(rf"^SUFFIX=svc{_DOMAIN}$|^[^#\n]*(?:SERVICE_NAME\}}?|-peer)\.[^.\s]+\.svc{_DOMAIN}", re.MULTILINE)
"""A setting in this operator's scripts; in v1.6's scripts it is part of the name."""


def domain_of(script: str) -> str | None:
    """The domain; empty if the pod registers without one; None if the script does not show it."""
    found = _NAMED.search(script)
    return None if found is None else found[1] or found[2] or ""
