"""Bounds for values in the answers of all servers. Decoding rejects a value beyond its bound and names the field.

The bounds are far above real values, but low enough to protect the operator's memory and the size of a status in
Kubernetes from a server that lies.
"""

from typing import Annotated

from msgspec import Meta

_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"
"""Excludes control characters, line separators and bidirectional marks, which a terminal would obey."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A count, or a time."""

Id = Annotated[int, Meta(ge=0)]
"""An unsigned 64-bit number; `require_uint64` checks the upper bound, which msgspec cannot."""

Name = Annotated[str, Meta(max_length=512, pattern=_PRINTABLE)]
"""A member's name, a state, a version or an address."""

Text = Annotated[str, Meta(max_length=4096, pattern=_PRINTABLE)]
"""A name, or a list of names, that users choose."""

MEMBERS = 1_000
"""The most members of PD, of a microservice or of DM; three to seven in practice."""

URLS = 100
"""The most URLs of one member."""

STORES = 10_000
"""The most stores, including Tombstone ones; the largest known clusters have fewer than a thousand."""

RULES = 100_000
"""The most placement rules; there is one for each partition of each table with TiFlash replicas."""


def require_uint64(**numbers: int) -> None:
    """Raise ValueError for a number beyond 64 bits; the decoder adds the field to the message."""
    for name, number in numbers.items():
        if number >= 2**64:
            raise ValueError(f"`{name}` does not fit into 64 bits")
