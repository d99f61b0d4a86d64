"""Only live reads make evidence (design.md 3.6, F1, F5)."""

from collections.abc import Callable

import pytest

from apis.tidbcluster import TidbClusterStatus
from kube.deletion import LiveObject
from kube.errors import Forbidden
from kube.resources import PODS
from member.evidence import Evidence, LivePods, LiveStatus, look_up, pods_live, shown_by, spec_confirmed, status_live
from tests.kube.fakes import FakeApi, status
from tests.member.reconciling import CLUSTER_PATH, as_object, context


@pytest.mark.parametrize(
    "forge",
    [
        lambda: Evidence(object(), "PD has no member for pod demo-pd-2"),
        lambda: LivePods(object(), "pd", []),
        lambda: LiveStatus(object(), TidbClusterStatus()),
    ],
)
@pytest.mark.rule("F5")
def test_no_other_module_makes_evidence(forge: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"live read; use one of the functions of member\.evidence"):
        forge()


@pytest.mark.rule("F5")
def test_a_cached_object_is_no_evidence() -> None:
    with pytest.raises(TypeError, match=r"pass what observe returned"):
        shown_by(as_object({"metadata": {"name": "a"}}), "its node is lost")  # type: ignore[arg-type]


@pytest.mark.rule("F5")
def test_pods_read_live_are_evidence_of_themselves() -> None:
    found = pods_live(context(FakeApi()), "tikv")
    assert isinstance(found, Evidence)
    assert [] == found.pods


@pytest.mark.rule("F1")
def test_an_absent_object_is_evidence_and_a_refused_read_is_not() -> None:
    api = FakeApi()
    ctx = context(api)
    api.put(PODS.path("ns", "a"), {"metadata": {"name": "a", "namespace": "ns"}})
    assert isinstance(look_up(ctx, PODS, "a", "ns"), LiveObject)
    gone = look_up(ctx, PODS, "b", "ns")
    assert isinstance(gone, Evidence)
    assert "Pod b does not exist" == gone.what
    api.failures.append(status(403, "Forbidden", name="b"))
    with pytest.raises(Forbidden):
        look_up(ctx, PODS, "b", "ns")


@pytest.mark.rule("F4")
def test_a_cluster_that_was_recreated_is_evidence_of_nothing() -> None:
    api = FakeApi()
    ctx = context(api)
    assert status_live(ctx)
    api.put(CLUSTER_PATH, {"metadata": {"name": "demo", "namespace": "ns", "uid": "uid-2"}})
    assert (None, None) == (status_live(ctx), spec_confirmed(ctx))


def test_two_pieces_of_evidence_are_one_that_says_both() -> None:
    ctx = context(FakeApi())
    both = pods_live(ctx, "pd") & pods_live(ctx, "tikv")
    assert "the current pods of pd; the current pods of tikv" == both.what
