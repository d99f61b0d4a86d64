"""Patterns of names."""

import re

OBJECT = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""Names of most objects."""

NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

DOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*\.?", re.IGNORECASE)
"""Wider than names of objects, since resolvers are."""
