"""Leases in other namespaces show which other operators manage a cluster, and the operator reports them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from controllers.other_operators import OPERATOR_CONFLICT, SCOPE, OtherOperators, Scope
from informers.handlers import ResourceEventHandler
from kube.leases import micro_time
from kube.objects import Json, Object
from kube.reading import Lister
from kube.resources import LEASES, Resource
from ports.clock import FakeClock
from tests.informers.support import as_object

ME = "tidb-admin/tidb-controller-manager"
Annotations = Mapping[str, str]
OTHER = "elsewhere/tidb-controller-manager"


@dataclass
class Events:
    """A recorder."""

    told: list[tuple[str, str]] = field(default_factory=list)

    def event(self, about: Object, type: str, reason: str, message: str) -> None:  # noqa: A002
        self.told.append((reason, message))


class Leases:
    """An informer's view of Leases."""

    def __init__(self, clock: FakeClock) -> None:
        self.synced = True
        self._clock = clock
        self._handlers: list[ResourceEventHandler] = []
        self._last: dict[str, Object] = {}

    def informer_for(self, resource: Resource) -> "Leases":
        assert resource == LEASES
        return self

    def lister_for(self, resource: Resource) -> Lister:
        raise AssertionError("Leases are not listed")

    def add_event_handler(self, handler: ResourceEventHandler, resync_period: float | None = None) -> None:
        self._handlers.append(handler)

    def has_synced(self) -> bool:
        return self.synced

    def show(self, scope: Scope | Annotations | None, holder: str = "somebody", namespace: str = "elsewhere") -> None:
        """A Lease as it is now: renewed, when it was there before."""
        annotations = scope.annotation if isinstance(scope, Scope) else scope or {}
        meta = {"name": "tidb-controller-manager", "namespace": namespace, "annotations": dict(annotations)}
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": micro_time(self._clock.wall())}
        new = as_object({"metadata": meta, "spec": spec})
        old = self._last.get(namespace)
        self._last[namespace] = new
        for handler in self._handlers:
            if old is None:
                handler.on_add(new, True)
            else:
                handler.on_update(old, new)

    def delete(self, namespace: str = "elsewhere") -> None:
        for handler in self._handlers:
            handler.on_delete(self._last.pop(namespace))

    def renew(self, scope: Scope | Annotations | None, namespace: str = "elsewhere") -> None:
        """An operator is at work: it renews the Lease."""
        self.show(scope, namespace=namespace)
        self._clock.step(2.0)
        self.show(scope, namespace=namespace)


class Bench:
    def __init__(self, clock: FakeClock, mine: Scope) -> None:
        self.leases, self.events = Leases(clock), Events()
        self.others = OtherOperators(ME, mine, clock, self.events)
        self.others.watch(self.leases)


@pytest.fixture
def bench(clock: FakeClock) -> Bench:
    return Bench(clock, Scope())


@pytest.fixture
def logs() -> Iterator[list[dict[str, object]]]:
    with capture_logs() as captured:
        yield captured  # type: ignore[misc]


def cluster(namespace: str = "db", told: str = "", **labels: str) -> Object:
    conditions: list[Json] = [{"type": OPERATOR_CONFLICT, "status": told, "message": "two of them"}] if told else []
    meta = {"name": "basic", "namespace": namespace, "labels": labels}
    return as_object({"metadata": meta, "status": {"conditions": conditions}})


def test_a_lease_that_is_renewed_is_of_an_operator_at_work(bench: Bench, clock: FakeClock) -> None:
    bench.leases.renew(Scope())
    assert (OTHER,) == bench.others.managing(cluster())
    clock.step(29.0)
    assert (OTHER,) == bench.others.managing(cluster())
    clock.step(2.0)
    assert () == bench.others.managing(cluster())


def test_an_unchanging_lease_may_belong_to_a_killed_operator(bench: Bench) -> None:
    bench.leases.show(Scope())
    bench.leases.show(Scope())  # a resync
    assert () == bench.others.managing(cluster())


def test_a_released_or_deleted_lease_belongs_to_no_operator(bench: Bench) -> None:
    bench.leases.renew(Scope())
    bench.leases.show(Scope(), holder="")
    assert () == bench.others.managing(cluster())
    bench.leases.renew(Scope())
    bench.leases.delete()
    assert () == bench.others.managing(cluster())


@pytest.mark.parametrize(
    ("theirs", "managed"),
    [
        (Scope(), True),
        (Scope("db"), True),
        (Scope("other"), False),
        (Scope("", "version=canary"), True),
        (Scope("", "version!=canary"), False),
        (Scope("", "version in (canary, next)"), True),
        (Scope("other", "version=canary"), False),
        (Scope("", "no selector at all"), True),
    ],
    ids=str,
)
@pytest.mark.rule("3.2")
def test_whose_scopes_share_no_cluster_do_not_meet(bench: Bench, theirs: Scope, managed: bool) -> None:
    bench.leases.renew(theirs)
    assert managed == bool(bench.others.managing(cluster(version="canary")))


@pytest.mark.parametrize(("mine", "managed"), [(Scope(), True), (Scope("", "version=canary"), False)], ids=str)
@pytest.mark.rule("3.2")
def test_v1_6_states_no_scope_and_counts_as_managing_all_but_what_a_selector_excludes(
    clock: FakeClock, mine: Scope, managed: bool
) -> None:
    bench = Bench(clock, mine)
    bench.leases.renew(None)
    assert managed == bool(bench.others.managing(cluster(version="canary")))


def test_a_malformed_annotation_states_no_scope(bench: Bench) -> None:
    for text in ("", "{", "[]", '{"namespace": 3}'):
        bench.leases.renew({SCOPE: text})
        assert (OTHER,) == bench.others.managing(cluster()), text
        bench.leases.delete()
    assert {SCOPE: '{"namespace":"","selector":""}'} == Scope().annotation


def test_both_say_the_same_or_they_would_write_for_ever(clock: FakeClock) -> None:
    here, there = Bench(clock, Scope()), Bench(clock, Scope())
    there.others = OtherOperators(OTHER, Scope(), clock, there.events)
    there.others.watch(there.leases)
    here.leases.renew(Scope())
    there.leases.renew(Scope(), namespace="tidb-admin")
    (said,) = here.others.condition(cluster()).values()
    assert [said] == list(there.others.condition(cluster()).values())
    assert (True, "AnotherOperator") == said[:2]
    assert said[2].startswith(f"{OTHER} and {ME} manage this cluster; stop all but one, or give each")


def test_a_conflict_is_reported_once_in_log_and_events_and_ends_once(
    bench: Bench, clock: FakeClock, logs: list[dict[str, object]]
) -> None:
    assert {} == bench.others.condition(cluster())
    bench.leases.renew(Scope())
    for told in ("", "True", "True"):
        bench.others.condition(cluster(told=told))
    assert ["AnotherOperator"] == [reason for reason, _ in bench.events.told]

    clock.step(60.0)
    for told in ("True", "True"):
        (said,) = bench.others.condition(cluster(told=told)).values()
        assert (False, "OneOperator") == said[:2]
    assert {} == bench.others.condition(cluster(told="False"))
    assert [
        "another operator is at work",
        "another operator manages this cluster",
        "no other operator manages this cluster now",
    ] == [entry["event"] for entry in logs]


def test_an_operator_that_may_not_see_leases_leaves_the_condition_of_another(bench: Bench, clock: FakeClock) -> None:
    bench.leases.synced = False
    blind = OtherOperators(ME, Scope("db"), clock, bench.events)
    for others in (bench.others, blind):
        assert {OPERATOR_CONFLICT: (True, "AnotherOperator", "two of them")} == others.condition(cluster(told="True"))
        assert {} == others.condition(cluster(told="False"))


def test_an_operator_that_has_just_started_leaves_the_condition_of_another(bench: Bench, clock: FakeClock) -> None:
    """It has seen no renewal yet, and would end a lasting conflict."""
    bench.leases.show(Scope())
    clock.step(14.0)
    assert {OPERATOR_CONFLICT: (True, "AnotherOperator", "two of them")} == bench.others.condition(cluster(told="True"))
    clock.step(1.0)
    (said,) = bench.others.condition(cluster(told="True")).values()
    assert (False, "OneOperator") == said[:2]
