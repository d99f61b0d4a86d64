"""Root's first password (objects.md 4.5, lifecycle.md 6.9): a Secret stores it before root gets it.

After `status.tidb.passwordInitialized` is set, the operator sends no more requests. A pending password is reported, but
blocks nothing else.
"""

import base64

from dataplane.errors import DataPlaneError
from dataplane.sql import AccessDenied
from kube.actions import Emit
from kube.events import NORMAL
from kube.objects import Json, secret_data
from kube.resources import SECRETS
from member import api_clients, labels
from member.actions import SetRootPassword
from member.apply.writes import create_or_find
from member.context import Held, ReconcileContext
from member.outcome import Outcome, Refused, Waiting
from member.polling import next_poll
from ports.randomness import Randomness

_KEY = "root"
_DIGITS = "0123456789"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SYMBOLS = "~!@#$%^&*()_+-={}|[]:<>?,./"
"""Without quotes and backslash."""


async def act(ctx: ReconcileContext) -> Outcome | None:
    """Set root's password once a server serves, if the spec wants it and it has not been set.

    Raises OwnerGone, ApiError, TransportError.
    """
    spec, status = ctx.tc.spec.tidb, ctx.status.tidb
    is_wanted = spec is not None and spec.initializer is not None and spec.initializer.create_password
    if not is_wanted or status.password_initialized is not None or ctx.held is not Held.NO:
        return None
    serving = next((name for name, member in status.members.items() if member.health), "")
    if not serving:
        # the component already waits for a server
        return None
    password = await _password(ctx)
    if isinstance(password, Refused):
        return password
    try:
        await SetRootPassword(api_clients.root(ctx, serving), password)
    except AccessDenied:
        what = f"root has a password already; it is in Secret {_name(ctx)} unless another client has set it"
        await Emit(ctx.owner, NORMAL, "PasswordExists", what)
    except DataPlaneError as error:
        return Waiting("PasswordNotSet", f"root has no password yet: {error}", next_poll(ctx, "tidb"))
    status.password_initialized = True
    return None


async def _password(ctx: ReconcileContext) -> str | Refused:
    """The password in the Secret, which is created if it does not exist."""
    name = _name(ctx)
    there = ctx.secret(name)
    if there is None:
        password = new_password(ctx.deps.passwords)
        if await create_or_find(ctx, SECRETS, _secret(ctx, password)) is None:
            return password
        there = ctx.deps.client.get(SECRETS, name, ctx.namespace)
    try:
        held = secret_data(there).get(_KEY, b"").decode()
    except UnicodeDecodeError:
        held = ""
    what = f"Secret {name} exists and has no text under the key {_KEY}, which root is to get as its password"
    return held or Refused("MissingSecret", f"{what}; add the key, or delete the Secret", next_poll(ctx, "tidb"))


def new_password(draw: Randomness) -> str:
    """A password of 13 different characters: 4 digits, 3 symbols, 6 letters, in random order."""
    chosen = [*_drawn(draw, _DIGITS, 4), *_drawn(draw, _SYMBOLS, 3), *_drawn(draw, _LETTERS, 6)]
    return "".join(_drawn(draw, chosen, len(chosen)))


def _drawn(draw: Randomness, pool: str | list[str], count: int) -> list[str]:
    left = list(pool)
    return [left.pop(draw.integer(0, len(left) - 1)) for _ in range(count)]


def _name(ctx: ReconcileContext) -> str:
    return f"{ctx.name}-init"


def _secret(ctx: ReconcileContext, password: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": labels.object_meta(ctx.tc, _name(ctx), labels.cluster_labels(ctx.tc)),
        "type": "Opaque",
        "data": {_KEY: base64.b64encode(password.encode()).decode()},
    }
