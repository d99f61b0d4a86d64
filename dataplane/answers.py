"""What values in an answer may be, whichever server sends it: decoding refuses what lies beyond, and names the field.

The bounds are far above what the components can mean, and low enough that neither the operator's memory nor a status in
Kubernetes suffers from a server that lies.
"""

from typing import Annotated

from msgspec import Meta

_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"
"""Without control characters, ends of lines and marks of direction, which a terminal would obey."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A number of things, or a time."""

Id = Annotated[int, Meta(ge=0)]
"""An unsigned number of 64 bits; `require_uint64` checks its upper bound, which msgspec cannot."""

Name = Annotated[str, Meta(max_length=512, pattern=_PRINTABLE)]
"""The name of a member, a state, a version, an address."""

Text = Annotated[str, Meta(max_length=4096, pattern=_PRINTABLE)]
"""A name or a list of names that users choose."""

MEMBERS = 1_000
"""Members of PD, of a microservice, of DM: three to seven in practice."""

URLS = 100
"""URLs of one member."""

STORES = 10_000
"""Stores, those that are gone included; the largest clusters known have less than a thousand."""

RULES = 100_000
"""Placement rules: one for each partition of each table that has replicas on TiFlash."""


def require_uint64(**numbers: int) -> None:
    """Raise ValueError, which decoding reports with the place, for a number beyond 64 bits."""
    for name, number in numbers.items():
        if number >= 2**64:
            raise ValueError(f"`{name}` does not fit into 64 bits")
