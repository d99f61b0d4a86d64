"""Mutating admission: webhooks change an object that is written, before it gets defaults and is validated.

As their rules usually are, these name objects and no subresources: a status passes them by.
"""

from collections.abc import Callable
from typing import TypeAlias

from kube.objects import Json
from kube.resources import Resource

Webhook: TypeAlias = Callable[[Resource, Json, Json | None], None]
"""Changes an object in place; what it replaces is given, too, None for a new one."""
