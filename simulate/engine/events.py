"""Carries out the edits and faults of a plan at their times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from apis.consent import parse_policy
from kube.errors import ApiError, Invalid, NotFound
from kube.objects import Json
from kube.resources import SECRETS, TIDB_CLUSTERS
from ports.transport import TransportError
from rehearsal.caches import Cache
from simulate.engine import plan
from simulate.engine.certificates import secrets
from simulate.engine.hands import Hands, key_of, named
from simulate.engine.request_faults import ByWrite
from simulate.engine.rivals import Rival
from simulate.engine.state import State
from simulate.engine.worlds import CLUSTERS, KEY, NAMESPACE
from simulate.engine.write_addresses import Address, address

if TYPE_CHECKING:
    from sandbox.world import World
    from simulate.engine.engine import Engine

_RETRY_AFTER = 5.0
"""Seconds before a refused edit is repeated."""

_SECOND = "operator-2"

_MOMENT = timedelta(seconds=20)
"""How long an expiring certificate is still valid: long enough for every server to have read it."""


class Sight:
    """A condition: an object `plural.group/name` exists, or a field of it, `plural.group/name/a/b`, is set."""

    def __init__(self, world: World, what: str) -> None:
        """Raise InvalidPlan for a malformed condition."""
        plural, *names = what.split("/")
        self._resource, self._name = named("/".join([plural, *names[:1]]))
        self._path = names[1:]
        self._storage = world.server.storage
        self._version = -1

    def is_seen(self) -> bool:
        """True if it holds now; an unchanged object is not read again."""
        stored = self._storage.get(str(self._resource), key_of(self._resource, self._name))
        if stored is None or stored.version == self._version:
            return False
        self._version = stored.version
        value: Json | None = stored.tree()
        for step in self._path:
            value = (value or {}).get(step)
        return bool(value)


class Events:
    """The events of one plan."""

    def __init__(self, engine: Engine, events: Iterable[plan.Edit | plan.Fault] = ()) -> None:
        """Schedule the timed events; `on_write` triggers the others."""
        self._engine = engine
        self._on_write: dict[tuple[Address, str], list[plan.Edit | plan.Fault]] = defaultdict(list)
        self.hands = Hands(engine.admin, State(engine.world))
        self._waiting: list[plan.Edit] = []
        """Edits that the API server has refused so far."""
        self._once: list[tuple[Sight, plan.Edit | plan.Fault]] = []
        """Events that wait for a condition."""
        self._rivals: list[Rival] = []
        for event in events:
            if event.once:
                self._once.append((Sight(engine.world, event.once), event))
            elif (where := address(event)) is None:
                self._later(event.at or 0.0, event)
            elif not isinstance(event, ByWrite):
                self._on_write[where, event.when].append(event)

    def on_write(self, addresses: Collection[Address], when: str) -> None:
        """A write is about to be sent, or was sent."""
        for event in (event for each in addresses for event in self._on_write.get((each, when), ())):
            self._happen(event)

    def look(self) -> None:
        """Check the conditions that events wait for."""
        for sight, event in self._once[:]:
            if sight.is_seen():
                self._once.remove((sight, event))
                self._later(event.later, event)
        for rival in self._rivals:
            rival.look()

    @property
    def fought(self) -> Iterator[str]:
        """Violations in the operator's reactions to clients that insist."""
        return (what for rival in self._rivals for what in rival.wrong())

    @property
    def unseen(self) -> list[str]:
        """The conditions that events still wait for."""
        return [event.once for _, event in self._once]

    def _later(self, seconds: float, event: plan.Edit | plan.Fault) -> None:
        self._engine.later(seconds, lambda: self._happen(event))

    def _happen(self, event: plan.Edit | plan.Fault) -> None:
        who = "user" if isinstance(event, plan.Edit) else "fault"
        self._engine.note(who, _described(event))
        match event:
            case plan.Edit():
                self._waiting.append(event)
                if len(self._waiting) == 1:
                    self._edit_in_order()
            case plan.Crash() | plan.Permits() | plan.Feature() | plan.Newer():
                self._begin_anew(event)
            case plan.Trouble():
                self._engine.trouble(event)
            case plan.Stale() | plan.Hidden() | plan.Emptied():
                self._blind(event)
            case plan.TimeTravel():
                self._travel(event)
            case plan.Second():
                self._engine.start_operator(_SECOND)
                self._engine.later(event.seconds, lambda: self._engine.stop_operator(_SECOND))
            case plan.Jump():
                self._engine.jump(timedelta(seconds=event.seconds), only_operators=event.whose == "operator")
            case plan.Foreign() | plan.Deleted() | plan.Created():
                self._with_retries(lambda: self._by_hand(event))
            case plan.Insists():
                self._rivals.append(Rival(self._engine, event))
            case plan.World() | plan.Expires():
                self._break_world(event)
            case _:
                raise plan.InvalidPlan(f"{_described(event)}: hits a single request and needs `write`")

    def _with_retries(self, write: Callable[[], None]) -> None:
        """Other controllers retry if the API server does not answer."""
        try:
            write()
        except (ApiError, TransportError) as error:
            self._engine.note("fault", f"tries again later: {error}")
            self._engine.later(_RETRY_AFTER, lambda: self._with_retries(write))

    def _edit_in_order(self) -> None:
        """Users wait for an edit to succeed before the next one."""
        while self._waiting:
            try:
                self._edit(self._waiting[0])
            except Invalid as error:
                self._engine.note("user", f"gives up: {error}")
            except (ApiError, TransportError) as error:
                self._engine.note("user", f"tries again later: {error}")
                self._engine.later(_RETRY_AFTER, self._edit_in_order)
                return
            del self._waiting[0]

    def _by_hand(self, event: plan.Hand) -> None:
        if said := self.hands.act(event):
            self._engine.note("fault", said)

    def _edit(self, edit: plan.Edit) -> None:
        patch = ({"spec": edit.spec} if edit.spec else {}) | (
            {"metadata": {"annotations": edit.annotations}} if edit.annotations else {}
        )
        namespace, _, cluster = (edit.neighbour or KEY).partition("/")
        namespace = edit.namespace or namespace
        resource, name = named(edit.target) if edit.target else (TIDB_CLUSTERS, cluster)
        try:
            if patch:
                self._engine.admin.patch(resource, name, namespace if resource.namespaced else "", patch)
            if edit.body:
                body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
                self._engine.require_namespace(namespace)
                self._engine.admin.create(resource, body | edit.body, namespace if resource.namespaced else "")
            if edit.delete:
                resource, name = named(edit.delete)
                self._engine.admin.delete(resource, name, namespace if resource.namespaced else "")
            if edit.create:
                self._engine.apply(CLUSTERS[edit.create]())
        except NotFound:
            self._engine.note("user", f"finds no {resource} {name}")

    def _begin_anew(self, event: plan.Crash | plan.Permits | plan.Feature | plan.Newer) -> None:
        if isinstance(event, plan.Permits):
            self._engine.settings = replace(self._engine.settings, references=parse_policy(event.flag))
        if isinstance(event, plan.Feature):
            self._engine.settings = replace(self._engine.settings, advanced_stateful_sets=event.on)
        if isinstance(event, plan.Newer):
            self._engine.install_newer()
        self._restart(event.seconds, None)

    def _restart(self, after: float, at: int | None) -> None:
        self._engine.stop_operator()
        self._engine.later(after, lambda: self._engine.start_operator(at=at))

    def _blind(self, event: plan.Stale | plan.Hidden | plan.Emptied) -> None:
        caches = [cache for cache in self._caches(event.caches) if not cache.blind]
        for cache in caches:
            cache.blind = True
            if isinstance(event, plan.Emptied):
                cache.empty()

        def see() -> None:
            self._engine.note("fault", f"caches see again: {', '.join(event.caches) or 'all'}")
            for cache in caches:
                cache.blind = False
                if isinstance(event, plan.Hidden):
                    cache.cut()
            self._engine.look_again()

        self._engine.later(event.seconds, see)

    def _caches(self, names: tuple[str, ...]) -> list[Cache]:
        operator = self._engine.operators.get("operator")
        if operator is None:
            return []
        named = [cache for resource, cache in operator.caches.items() if not names or str(resource) in names]
        return named if names else [*named, operator.secrets]

    def _travel(self, event: plan.TimeTravel) -> None:
        versions = self._engine.versions
        if not versions:
            return
        # no cache can show versions that the API server has compacted
        at = max(versions[-min(event.back, len(versions))], self._engine.world.server.storage.compacted)
        self._engine.stop_operator()
        self._engine.start_operator(at=at)
        self._engine.operators["operator"].look()
        self._blind(plan.Stale(at=0.0, seconds=event.seconds))

    def _break_world(self, event: plan.World | plan.Expires) -> None:
        if isinstance(event, plan.Expires):
            self._expire(event)
        else:
            self._world_fault(event)

    def _expire(self, event: plan.Expires) -> None:
        """Replace a certificate by one with the same names that expires soon, and later restore it."""
        admin, cluster = self._engine.admin, self._engine.cluster()
        moment = self._engine.clock.wall().replace(microsecond=0) + _MOMENT
        short = next(
            secret for secret in secrets(cluster, NAMESPACE, moment) if secret["metadata"]["name"] == event.secret
        )
        own = admin.get(SECRETS, event.secret, NAMESPACE).decode()["data"]
        admin.patch(SECRETS, event.secret, NAMESPACE, {"data": short["data"]})

        def renew() -> None:
            admin.patch(SECRETS, event.secret, NAMESPACE, {"data": own})

        self._engine.later(_MOMENT.total_seconds() + event.seconds, renew)

    def _world_fault(self, event: plan.World) -> None:
        verb = getattr(self._engine.world.faults, event.verb, None)
        if verb is None or event.verb.startswith("_"):
            raise plan.InvalidPlan(f"verb: {event.verb!r} is no verb of WorldFaults")
        try:
            heal: Callable[[], None] | None = verb(**event.arguments)
        except LookupError as error:
            if not event.if_there:
                raise
            self._engine.note("fault", f"has no target: {error}")
            return
        if heal is None or not event.seconds:
            return

        def mend() -> None:
            self._engine.note("fault", f"{event.verb} ends")
            heal()
            self._engine.look_again()

        self._engine.later(event.seconds, mend)


def _described(event: plan.Edit | plan.Fault) -> str:
    fields = {name: value for name in event.__struct_fields__ if (value := getattr(event, name)) not in (None, "", {})}
    return f"{type(event).__name__} {fields}"
