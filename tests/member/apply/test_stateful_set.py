"""A StatefulSet loses and restarts pods on evidence alone (design.md 3.6, F5, I3, I4)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from apis.ordinals import OrdinalSet
from kube.objects import Json
from kube.resources import STATEFUL_SETS
from member.apply import stateful_set
from member.apply.last_applied import stamped
from member.apply.stateful_set import EvidenceMissing, Replicas, UpdateStrategy, with_size, with_strategy
from member.apply.writes import apply
from member.context import ReconcileContext
from member.evidence import Evidence, pods_live
from member.labels import WRITTEN_GENERATION, with_annotation
from member.tikv import desired
from tests.kube.fakes import FakeApi
from tests.member.clusters import cluster
from tests.member.deciding import concluded
from tests.member.reconciling import context, put_stateful_set

ON_DELETE: Json = {"type": "OnDelete"}


def rolling(partition: int) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


def tikv(replicas: int = 3, strategy: Json | None = None) -> Json:
    """TiKV's StatefulSet, as it could be desired."""
    body = desired.stateful_set(cluster(tikv={"replicas": replicas}), "cm")
    return body | {"spec": body["spec"] | ({"updateStrategy": strategy} if strategy else {})}


class Written:
    """The result of a patch of the StatefulSet `there`."""

    def __init__(self, there: Json) -> None:
        self.api = FakeApi()
        self.ctx: ReconcileContext = context(self.api)
        self.body = there
        self._live = put_stateful_set(self.api, there)
        self.seen: Evidence = pods_live(self.ctx, "tikv")

    def update(self, wanted: Json, replicas: Replicas | None = None, strategy: UpdateStrategy | None = None) -> Json:
        """The spec that the API server has afterwards."""
        replicas, strategy = replicas or Replicas.unchanged(self.body), strategy or UpdateStrategy.unchanged(self.body)
        writing = stateful_set.update(self.ctx, wanted, self._live, replicas=replicas, strategy=strategy)
        concluded(self.ctx, writing)
        spec: Json = self.api.objects[STATEFUL_SETS.path("ns", "demo-tikv")]["spec"]
        return spec

    @property
    def patched(self) -> bool:
        """True if a request was sent."""
        return "PATCH demo-tikv" in self.api.calls


@pytest.mark.rule("I3")
def test_fewer_replicas_are_not_written_without_evidence() -> None:
    here = Written(tikv(4))
    with pytest.raises(EvidenceMissing, match=r"from 4 to 3 replicas .* Replicas\.lowered"):
        here.update(tikv(3))
    assert not here.patched


@pytest.mark.rule("I3")
def test_evidence_of_one_pod_is_none_of_two() -> None:
    here = Written(tikv(5))
    one = Replicas.lowered(here.body, [here.seen])
    assert 4 == one.count
    with pytest.raises(EvidenceMissing, match="from 5 to 3 replicas"):
        here.update(tikv(3), one)
    assert 4 == here.update(with_size(here.body, one), one)["replicas"]


def test_more_replicas_need_no_evidence() -> None:
    here = Written(tikv(3))
    more = Replicas.raised(here.body, OrdinalSet(5))
    spec = here.update(with_size(here.body, more), more)
    assert (5, rolling(5)) == (spec["replicas"], spec["updateStrategy"])
    with pytest.raises(ValueError, match=r"would remove pods \[2\]; use Replicas\.lowered"):
        Replicas.raised(here.body, OrdinalSet(2))


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        (rolling(3), rolling(2)),
        (rolling(3), {"type": "RollingUpdate"}),
        (ON_DELETE, rolling(2)),
        (rolling(9), rolling(0)),
    ],
)
@pytest.mark.rule("F5")
def test_a_lower_partition_is_not_written_without_evidence(there: Json, wanted: Json) -> None:
    here = Written(tikv(strategy=there))
    with pytest.raises(EvidenceMissing, match=r"restart pods from ordinal \d up .* UpdateStrategy\.lowered"):
        here.update(tikv(strategy=wanted))
    with pytest.raises(EvidenceMissing):
        here.update(tikv(strategy=wanted), strategy=UpdateStrategy.lowered(1, here.seen))
    assert not here.patched


@pytest.mark.rule("F5")
def test_a_lower_partition_is_written_with_evidence() -> None:
    here = Written(tikv())
    lower = UpdateStrategy.lowered(2, here.seen)
    assert rolling(2) == here.update(with_strategy(here.body, lower), strategy=lower)["updateStrategy"]


@pytest.mark.parametrize(
    ("there", "wanted"),
    [(rolling(9), rolling(3)), (rolling(1), rolling(3)), (rolling(1), ON_DELETE), (ON_DELETE, rolling(3))],
)
def test_a_change_that_restarts_no_pod_needs_no_evidence(there: Json, wanted: Json) -> None:
    spec = Written(tikv(strategy=there)).update(tikv(strategy=wanted))
    assert wanted.items() <= spec["updateStrategy"].items()


def test_after_on_delete_a_partition_above_the_outdated_pods_needs_no_evidence() -> None:
    held = UpdateStrategy.after_on_delete([0, 1])
    here = Written(tikv(strategy=ON_DELETE))
    assert rolling(2) == here.update(with_strategy(here.body, held), strategy=held)["updateStrategy"]


def test_a_partition_that_follows_no_on_delete_is_not_excused_by_it() -> None:
    here, held = Written(tikv()), UpdateStrategy.after_on_delete([0])
    with pytest.raises(EvidenceMissing):
        here.update(with_strategy(here.body, held), strategy=held)


@pytest.mark.rule("F1")
def test_an_unseen_stateful_set_is_found_and_left_alone_by_its_creation() -> None:
    here = Written(tikv(4))
    found = concluded(here.ctx, stateful_set.create(here.ctx, tikv(3)))
    assert found is not None
    assert 4 == found.decode()["spec"]["replicas"]
    assert not here.patched


@pytest.mark.rule("F5")
def test_a_stateful_set_has_no_other_way() -> None:
    here = Written(tikv())
    with pytest.raises(TypeError, match=r"member\.apply\.stateful_set, which asks for evidence"):
        concluded(here.ctx, apply(here.ctx, STATEFUL_SETS, tikv(2), None))


@pytest.mark.parametrize(
    "forge",
    [
        lambda _: Replicas(pods=OrdinalSet(2), maker=object()),
        lambda _: UpdateStrategy(spec=rolling(0), maker=object()),
        lambda body: Replicas.lowered(body, [True]),  # type: ignore[list-item]
        lambda _: Replicas.as_found(2, True),  # type: ignore[arg-type]
        lambda _: UpdateStrategy.lowered(0, "the user wants it"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.rule("F5")
def test_plain_values_make_neither_replicas_nor_strategies(forge: Callable[[Json], Any]) -> None:
    with pytest.raises(TypeError, match=r"by those class methods|takes evidence from a function of member\.evidence"):
        forge(tikv())


@pytest.mark.rule("F5")
def test_a_stateful_set_is_not_written_with_plain_values() -> None:
    here = Written(tikv())
    with pytest.raises(TypeError, match="written with Replicas, which holds the evidence"):
        here.update(tikv(2), 2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="written with UpdateStrategy, which holds the evidence"):
        here.update(tikv(strategy=rolling(0)), strategy=rolling(0))  # type: ignore[arg-type]
    assert not here.patched


def tikv_with(change: Json, *, since_our_write: int) -> Json:
    """TiKV's StatefulSet with another container; how many times it was written since we have."""
    body = with_annotation(stamped(tikv()), WRITTEN_GENERATION, "u/4")
    template = json.loads(json.dumps(body["spec"]["template"]))
    template["spec"]["containers"][0] |= change
    metadata = body["metadata"] | {"uid": "u", "generation": 4 + since_our_write}
    return body | {"metadata": metadata, "spec": body["spec"] | {"template": template}}


def test_a_change_of_the_pod_template_by_admission_is_not_sent_along() -> None:
    """While its webhook is silent for a moment, pods would restart for nothing."""
    here = Written(tikv_with({"env": [{"name": "REGION", "value": "north"}]}, since_our_write=0))
    more = Replicas.raised(here.body, OrdinalSet(5))
    spec = here.update(with_size(tikv(3), more), more)
    assert (5, here.body["spec"]["template"]) == (spec["replicas"], spec["template"])


def test_a_foreign_edit_of_the_pod_template_is_undone() -> None:
    here = Written(tikv_with({"image": "theirs"}, since_our_write=1))
    more = Replicas.raised(here.body, OrdinalSet(5))
    assert tikv(3)["spec"]["template"] == here.update(with_size(tikv(3), more), more)["template"]
