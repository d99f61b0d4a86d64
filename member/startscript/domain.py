"""Under which domain a start script makes its pod known (objects.md 7.4, 7.6), in scripts of v1.6 as in ours."""

import re

_DOMAIN = r"(?:\.([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?))?"
_NAMED = re.compile(rf"^SUFFIX=svc{_DOMAIN}$|^[^#\n]*(?:SERVICE_NAME\}}?|-peer)\.[^.\s]+\.svc{_DOMAIN}", re.MULTILINE)
"""A setting in our scripts; in those of v1.6 it stands in the name itself."""


def domain_of(script: str) -> str | None:
    """The domain, empty when the pod is known without one; None when the script does not say."""
    found = _NAMED.search(script)
    return None if found is None else found[1] or found[2] or ""
