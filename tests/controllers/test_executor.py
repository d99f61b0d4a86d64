"""The executor performs the actions that a decision awaits, and the decision continues with the results (ADR 15)."""

import gc

import pytest

from controllers.database_actions import executor_of
from controllers.executor import Executor
from dataplane.sql import RootClient
from kube.actions import Action, Annotate, Apply, Decision
from kube.errors import Conflict
from kube.objects import Object
from kube.resources import CONFIG_MAPS
from member.actions import SetRootPassword
from member.context import ReconcileContext
from tests.kube.fakes import FakeApi
from tests.member.reconciling import as_object, context

PATH = CONFIG_MAPS.path("ns", "a")


class Unheard(Action[None]):
    """An action that no executor knows."""


def executor(ctx: ReconcileContext) -> Executor:
    """An executor of actions on the API server."""
    return Executor(ctx.deps.applier, ctx.deps.recorder)


def stored(api: FakeApi) -> Object:
    """A ConfigMap as the API server has it."""
    return as_object(api.put(PATH, {"metadata": {"name": "a", "namespace": "ns"}, "data": {"hue": "red"}}))


async def paint(cached: Object, *hues: str) -> list[str]:
    """Write the hues one after another; return the resource versions of the results."""
    versions = []
    for hue in hues:
        wanted = {"metadata": {"name": "a", "namespace": "ns"}, "data": {"hue": hue}}
        cached = await Apply(CONFIG_MAPS, wanted, cached)
        versions.append(cached.metadata.resource_version)
    return versions


def test_a_decision_continues_with_the_object_that_a_write_returns() -> None:
    api = FakeApi()
    ctx = context(api)
    versions = executor(ctx).conclude(paint(stored(api), "green", "blue"))
    assert 2 == len(set(versions))
    assert "blue" == api.objects[PATH]["data"]["hue"]


def test_a_decision_handles_the_error_of_its_action() -> None:
    api = FakeApi()
    ctx, outdated = context(api), stored(api)
    executor(ctx).conclude(paint(outdated, "green"))

    async def careful() -> str:
        try:
            await Annotate(CONFIG_MAPS, outdated, {"a": "b"})
        except Conflict:
            return "decides again"
        return "written"

    assert "decides again" == executor(ctx).conclude(careful())


def test_an_error_that_a_decision_does_not_handle_ends_it() -> None:
    api = FakeApi()
    ctx, outdated = context(api), stored(api)
    executor(ctx).conclude(paint(outdated, "green"))
    with pytest.raises(Conflict):
        executor(ctx).conclude(paint(outdated, "blue"))
    assert "green" == api.objects[PATH]["data"]["hue"]


def test_a_failed_decision_leaves_no_garbage_to_collect() -> None:
    api = FakeApi()
    ctx, outdated = context(api), stored(api)
    executor(ctx).conclude(paint(outdated, "green"))

    def fail() -> None:
        with pytest.raises(Conflict):
            executor(ctx).conclude(paint(outdated, "blue"))

    fail()
    gc.collect()
    gc.disable()
    try:
        fail()
        assert 0 == gc.collect()
    finally:
        gc.enable()


@pytest.mark.parametrize("knows_the_database", [False, True])
def test_an_unknown_action_is_named(knows_the_database: bool) -> None:
    ctx = context(FakeApi())

    async def hopeful() -> None:
        await Unheard()

    with pytest.raises(TypeError, match="cannot perform Unheard"):
        (executor_of(ctx.deps) if knows_the_database else executor(ctx)).conclude(hopeful())


def test_an_action_that_cannot_be_performed_shows_no_password() -> None:
    async def decision(server: RootClient) -> None:
        await SetRootPassword(server, "hunter2")

    ctx = context(FakeApi())
    asked: Decision[None] = decision(RootClient.__new__(RootClient))
    with pytest.raises(TypeError) as found:
        executor(ctx).conclude(asked)
    assert "hunter2" not in str(found.value)
    assert "hunter2" not in repr(SetRootPassword(RootClient.__new__(RootClient), "hunter2"))
