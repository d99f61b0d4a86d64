"""Mutating admission: webhooks change a written object before it gets defaults and is validated.

Like most webhooks' rules, these match objects without subresources: a write of a status passes them.
"""

from collections.abc import Callable
from typing import TypeAlias

from kube.objects import Json
from kube.resources import Resource

Webhook: TypeAlias = Callable[[Resource, Json, Json | None], None]
"""Changes an object in place; also gets the replaced object, None for a new one."""
