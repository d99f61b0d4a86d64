"""The checks of several clusters in one world can fail."""

import pytest

from kube.resources import SERVICES
from member import api_clients
from member.context import ReconcileContext
from tests.simulate.planting import rogue, rules, short

pytestmark = [pytest.mark.slow, pytest.mark.planted]


def test_reports_a_reconcile_that_changes_a_neighbours_object(monkeypatch: pytest.MonkeyPatch) -> None:
    def label(ctx: ReconcileContext) -> None:
        if ctx.name == "basic-2":
            ctx.deps.client.patch(SERVICES, "basic-tidb-peer", ctx.namespace, {"metadata": {"labels": {"mine": "now"}}})

    assert "neighbour" in rules(short("neighbours-upgrade"), rogue(label, monkeypatch))


@pytest.mark.rule("I7")
def test_judges_every_cluster_of_the_world(monkeypatch: pytest.MonkeyPatch) -> None:
    def promise(ctx: ReconcileContext) -> None:
        if ctx.namespace == "elsewhere":
            ctx.status.cluster_id = "1"

    assert "I7" in rules(short("neighbours-upgrade"), rogue(promise, monkeypatch))


@pytest.mark.rule("I23")
def test_reports_a_joined_cluster_that_gives_up_a_healthy_store(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[int] = []

    def give_up(ctx: ReconcileContext) -> None:
        if ctx.name == "guest" and not gone:
            pd = api_clients.pd(ctx)
            store = next(each for each in pd.stores() if each.address.startswith("guest-"))
            gone.append(store.id)
            pd.delete_store(store)

    assert "I23" in rules(short("joined-upgrade"), rogue(give_up, monkeypatch))
