"""Permission to refer to objects of another namespace (docs/adr/0013-references-need-consent.md).

The owner of an object consents by an annotation on it; the administrator permits references by a flag of the operator.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

ALLOWED_FROM = "tidb.pingcap.com/allow-references-from"
"""On the target of references: the namespaces whose objects may refer to it, `ns-a,ns-c`, or `*`."""

LOOK_AGAIN = 10.0
"""Seconds until the operator reads a target again that does not consent and that it does not watch."""
FLAG = "-cross-namespace-references"

_ALLOW = "allow"
_CONSENT = "consent"
_EVERY = "*"
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Permission(Enum):
    """How a reference is permitted.

    `OPEN`: nothing restricts it, as in v1.6. `GRANTED`: by the owner of the target, or by the administrator for these
    namespaces; objects created by a grant are deleted with it. `NONE`: not at all.
    """

    OPEN = "open"
    GRANTED = "granted"
    NONE = "none"


class _Metadata(Protocol):
    @property
    def annotations(self) -> Mapping[str, str]: ...


class Target(Protocol):
    """An object that others refer to."""

    @property
    def metadata(self) -> _Metadata: ...


@dataclass(frozen=True, slots=True)
class ReferencePolicy:
    """The references that the administrator permits without the consent of owners.

    `is_open` permits every reference. `pairs` are the namespaces that refer, each with one that it may refer to; `*`
    stands for every namespace.
    """

    is_open: bool = False
    pairs: frozenset[tuple[str, str]] = frozenset()

    def judge(self, source: str, namespace: str, target: Target | None) -> Permission:
        """The permission of an object in namespace `source` to refer to `target` in `namespace`; None means that it
        does not exist.
        """
        if self.is_open or source == namespace:
            return Permission.OPEN
        consent = target.metadata.annotations.get(ALLOWED_FROM, "") if target is not None else ""
        listed = {each.strip() for each in consent.split(",")}
        is_granted = not listed.isdisjoint({source, _EVERY}) or self._permits(source, namespace)
        return Permission.GRANTED if is_granted else Permission.NONE

    def judge_everywhere(self, source: str) -> Permission:
        """The permission of an object in namespace `source` to reach all namespaces, for which no owner can consent."""
        if self.is_open:
            return Permission.OPEN
        return Permission.GRANTED if self._permits(source, _EVERY) else Permission.NONE

    def _permits(self, source: str, target: str) -> bool:
        return not self.pairs.isdisjoint((a, b) for a in (source, _EVERY) for b in (target, _EVERY))

    def __str__(self) -> str:
        """The value of the flag."""
        if self.is_open:
            return _ALLOW
        return ",".join(f"{source}:{target}" for source, target in sorted(self.pairs)) or _CONSENT


BY_CONSENT = ReferencePolicy()
"""The administrator permits nothing else: owners consent."""


def parse_policy(text: str) -> ReferencePolicy:
    """The value of the flag: `consent`, `allow`, or pairs of namespaces. Raises ValueError."""
    if text in (_CONSENT, _ALLOW):
        return ReferencePolicy(is_open=text == _ALLOW)
    return ReferencePolicy(pairs=frozenset(_pair(each.strip()) for each in text.split(",")))


def _pair(text: str) -> tuple[str, str]:
    source, _, target = text.partition(":")
    if not all(each == _EVERY or _NAMESPACE.fullmatch(each) for each in (source, target)):
        way_out = "write consent, allow, or FROM:TO with the namespace that refers and the one referred to"
        raise ValueError(f"{text!r} is not a pair of namespaces; {way_out}, such as monitoring:*,backup:prod")
    return source, target


def how_to_consent(source: str, kind: str, namespace: str, name: str) -> str:
    """Why an object in namespace `source` may not refer to another, and the command with which its owner can consent.

    The text does not depend on the existence of the other object, so that a condition does not reveal names in other
    namespaces.
    """
    command = f"kubectl -n {namespace} annotate {kind.lower()} {name} {ALLOWED_FROM}={source}"
    what = f"{kind} {namespace}/{name} does not exist, or does not allow references from namespace {source}"
    return f"{what}; ask its owner to run: {command}"
