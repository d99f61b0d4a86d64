"""Every deletion has live evidence of the object and of its justification (design.md 3.6, F5, O5)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from dataplane.addresses import Address
from dataplane.pd import Member, PDClient, Store
from kube.actions import Action
from kube.deletion import Destroyer, LiveObject
from kube.resources import PODS
from member.actions import Delete, RemoveMember, RemoveStore
from member.evidence import pods_live
from ports.clock import FakeClock
from tests.dataplane.scripted import ScriptedTransport
from tests.kube.fakes import FakeApi
from tests.member.deciding import concluded
from tests.member.reconciling import as_object, context

POD = {"metadata": {"name": "a", "namespace": "ns"}}
ONE_MEMBER = '{"members":[{"name":"demo-pd-1","member_id":7}]}'
ONE_STORE = '{"stores":[{"store":{"id":4,"address":"demo-tikv-0:20160","state_name":"Up"},"status":{}}]}'
ROOT = Path(__file__).parents[2]

T = TypeVar("T")


def client(transport: ScriptedTransport) -> PDClient:
    return PDClient(transport, Address("http://demo-pd.ns:2379"), clock=FakeClock())


@pytest.mark.rule("F5")
def test_a_cached_object_is_not_deleted() -> None:
    api = FakeApi()
    ctx = context(api)
    api.put(PODS.path("ns", "a"), POD)
    why = pods_live(ctx, "pd")
    with pytest.raises(TypeError, match=r"pass what observe returned"):
        concluded(ctx, _awaited(Delete(as_object(POD), why)))  # type: ignore[arg-type]
    assert "DELETE a" not in api.calls


@pytest.mark.parametrize("why", [True, "it is not wanted", None])
@pytest.mark.rule("F5")
def test_an_object_that_was_seen_live_is_not_deleted_without_evidence(why: object) -> None:
    api = FakeApi()
    ctx = context(api)
    api.put(PODS.path("ns", "a"), POD)
    seen = Destroyer(ctx.deps.client).observe(PODS, "a", "ns")
    assert isinstance(seen, LiveObject)
    with pytest.raises(TypeError, match=r"takes evidence from a function of member\.evidence"):
        concluded(ctx, _awaited(Delete(seen, why)))  # type: ignore[arg-type]
    assert "DELETE a" not in api.calls
    concluded(ctx, _awaited(Delete(seen, pods_live(ctx, "pd"))))
    assert "DELETE a" == api.calls[-1]


@pytest.mark.rule("F5")
def test_a_member_or_store_does_not_leave_pd_without_evidence() -> None:
    transport = ScriptedTransport().on("GET /pd/api/v1/members", (200, ONE_MEMBER))
    pd = client(transport.on("GET /pd/api/v1/stores?state=0&state=1&state=2", (200, ONE_STORE)))
    (member,), (store,) = pd.members().members, pd.stores()
    ctx = context(FakeApi())
    with pytest.raises(TypeError, match=r"takes evidence from a function of member\.evidence"):
        concluded(ctx, _awaited(RemoveMember(pd, member, True)))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"takes evidence from a function of member\.evidence"):
        concluded(ctx, _awaited(RemoveStore(pd, store, None)))  # type: ignore[arg-type]
    assert not [call for call in transport.calls if call.startswith("DELETE")]


@pytest.mark.rule("F5")
def test_a_member_or_store_that_pd_has_not_shown_does_not_leave_it() -> None:
    ctx, transport = context(FakeApi()), ScriptedTransport()
    pd, why = client(transport), pods_live(ctx, "pd")
    with pytest.raises(TypeError, match=r"from PDClient\.members"):
        concluded(ctx, _awaited(RemoveMember(pd, Member("demo-pd-1", 7, (), ()), why)))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"from PDClient\.store"):
        concluded(ctx, _awaited(RemoveStore(pd, Store(4, "demo-tikv-0:20160", "Up"), why)))  # type: ignore[arg-type]
    assert [] == transport.calls


@pytest.mark.slow
@pytest.mark.rule("F5")
def test_no_other_code_of_the_operator_deletes() -> None:
    found = {path for room in ("member", "meta", "controllers", "discovery") for path in _deleting(ROOT / room)}
    # the second deletes objects without data that other kinds want no more
    assert {"controllers/database_actions.py", "controllers/owned_deletion.py"} == found


async def _awaited(action: Action[T]) -> T:
    return await action


def _deleting(room: Path) -> Iterator[str]:
    """The modules that call a method which deletes an object, a member or a store."""
    methods = {"delete", "delete_member", "delete_store"}
    for path in room.rglob("*.py"):
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if any(isinstance(call, ast.Attribute) and call.attr in methods for call in calls):
            yield str(path.relative_to(ROOT))
