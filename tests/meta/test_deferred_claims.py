"""Steps for claims that a scale-in left behind or a scheduler locked (lifecycle.md 8.5, 11.2)."""

from typing import Any

import pytest

from kube.objects import Object
from member.labels import MEMBER_ID, POD_NAME, POD_SCHEDULING, PVC_DEFER_DELETING, STORE_ID
from meta.deferred_claims import Keep, Reclaim, Unlock, Unmark, deferred_step, lock_step
from tests.member.clusters import cluster
from tests.meta.objects import claim, pod

LOCK = {POD_SCHEDULING: "2026-01-01T00:00:00Z"}
MARK = {PVC_DEFER_DELETING: "2026-01-01T00:00:00Z"}
DELETED = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("locked", "user", "because"),
    [
        (claim("demo-pd-0", "pd"), pod("demo-pd-0", "pd"), "it is not locked"),
        (claim("demo-pd-0", "pd", annotations=LOCK | {POD_NAME: ""}), None, "it names no pod"),
        (claim("demo-pd-0", "pd", annotations=LOCK), None, "its pod does not exist"),
        (
            claim("demo-pd-0", "pd", annotations=LOCK, bound=False),
            pod("demo-pd-0", "pd"),
            "its pod is being scheduled",
        ),
        (claim("demo-pd-0", "pd", annotations=LOCK), pod("demo-pd-0", "pd", node=""), "its pod is being scheduled"),
    ],
)
@pytest.mark.rule("lifecycle-11.2")
def test_a_lock_stays_while_the_scheduler_needs_it(locked: Object, user: Object | None, because: str) -> None:
    assert Keep(because) == lock_step(locked, user)


@pytest.mark.rule("lifecycle-11.2")
def test_a_lock_is_removed_when_the_pod_is_placed_or_the_claim_is_left_behind() -> None:
    assert Unlock() == lock_step(claim("demo-pd-0", "pd", annotations=LOCK), pod("demo-pd-0", "pd"))
    assert Unlock() == lock_step(claim("demo-pd-0", "pd", annotations=LOCK | MARK), None)


def member(number: int, member_id: str) -> dict[str, Any]:
    name = f"demo-pd-{number}"
    return {name: {"name": name, "id": member_id, "clientURL": "", "health": True}}


def store(number: int, store_id: str, state: str = "Up") -> dict[str, Any]:
    return {store_id: {"id": store_id, "podName": f"demo-tikv-{number}", "ip": "", "leaderCount": 0, "state": state}}


PD = {"synced": True, "members": member(0, "10")}
TIKV = {"synced": True, "stores": store(0, "20")}


def step(there: Object, user: Object | None = None, *, reclaim: bool = True, **status: Any) -> object:
    tc = cluster(enablePVReclaim=reclaim, status={"pd": PD, "tikv": TIKV} | status)
    return deferred_step(tc, there, user)


def left(number: int, kind: str = "tikv", **options: Any) -> Object:
    """A marked claim."""
    options["annotations"] = MARK | options.get("annotations", {})
    return claim(f"demo-{kind}-{number}", kind, **options)


@pytest.mark.rule("I2")
def test_an_unused_claim_may_be_deleted() -> None:
    assert Reclaim() == step(left(3))
    assert Reclaim() == step(left(3, "pd"))


@pytest.mark.parametrize(
    ("there", "user", "because"),
    [
        (claim("demo-tikv-3", "tikv"), None, "it is not left behind"),
        (left(3, deletionTimestamp=DELETED), None, "it is being deleted"),
        (left(3, annotations={POD_NAME: ""}), None, "it names no pod of this cluster"),
        (left(3, annotations={POD_NAME: "mine"}), None, "it names no pod of this cluster"),
        (left(3, annotations={POD_NAME: "other-tikv-3"}), None, "it names no pod of this cluster"),
        (left(2), None, "its pod is wanted again"),
        (left(3, bound=False), None, "it is not bound"),
        (left(3), pod("demo-tikv-3", "tikv"), "its pod still exists"),
        (left(3, "tidb"), None, "its member may still be registered"),
    ],
)
@pytest.mark.rule("lifecycle-11.2")
def test_keeps_a_claim_that_may_be_needed(there: Object, user: Object | None, because: str) -> None:
    assert Keep(because) == step(there, user)


@pytest.mark.rule("lifecycle-11.2")
def test_a_claim_is_kept_unless_the_user_wants_it_reclaimed() -> None:
    assert Keep("spec.enablePVReclaim is false") == step(left(3), reclaim=False)


@pytest.mark.parametrize(
    ("there", "status"),
    [
        (left(3), {"tikv": {"synced": True, "stores": store(3, "23", "Down")}}),
        (left(3, labels={STORE_ID: "20"}), {}),
        (left(3), {"tikv": TIKV | {"synced": False}}),
        (left(3, "pd"), {"pd": {"synced": True, "members": member(3, "13")}}),
        (left(3, "pd", labels={MEMBER_ID: "10"}), {}),
        (left(3, "pd"), {"pd": PD | {"synced": False}}),
    ],
    ids=["store", "store by label", "unknown stores", "member", "member by label", "unknown members"],
)
@pytest.mark.rule("I1")
def test_keeps_a_claim_whose_member_or_store_may_exist(there: Object, status: dict[str, Any]) -> None:
    assert Keep("its member may still be registered") == step(there, **status)


@pytest.mark.parametrize("reclaim", [True, False])
@pytest.mark.rule("lifecycle-8.5")
def test_the_mark_is_removed_when_the_pod_uses_its_data_again(reclaim: bool) -> None:
    assert Unmark() == step(left(0), pod("demo-tikv-0", "tikv"), reclaim=reclaim)
    assert Unmark() == step(left(0, "pd"), pod("demo-pd-0", "pd"), reclaim=reclaim)
    assert Unmark() == step(left(0, "tidb"), pod("demo-tidb-0", "tidb"), reclaim=reclaim)


@pytest.mark.parametrize(
    ("there", "user", "status"),
    [
        (left(0), pod("demo-tikv-0", "tikv", ready=False), {}),
        (left(0), pod("demo-tikv-0", "tikv", deletionTimestamp=DELETED), {}),
        (left(0), pod("demo-tikv-0", "tikv"), {"tikv": {"synced": True, "stores": store(0, "20", "Offline")}}),
        (left(0), pod("demo-tikv-0", "tikv"), {"tikv": TIKV | {"synced": False}}),
        (left(1, "pd"), pod("demo-pd-1", "pd"), {}),
        (left(0, annotations={POD_NAME: "demo-tikv-1"}), pod("demo-tikv-1", "tikv"), {}),
    ],
    ids=["not Ready", "going", "store is going", "stores unknown", "no member", "another pod's claim"],
)
@pytest.mark.rule("F32")
def test_the_mark_stays_on_the_data_of_a_removed_member(there: Object, user: Object, status: dict[str, Any]) -> None:
    assert Keep("its pod is wanted again") == step(there, user, **status)
