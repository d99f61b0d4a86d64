"""The pages about a change and about a loss."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest

from cli.failures import Failure
from cli.tidb.ui.rehearsals import Rehearsals
from kube.client import Client
from kube.objects import Json
from kube.resources import TIDB_CLUSTERS
from tests.cli.tidb.typing_commands import ReadOnly
from tests.cli.tidb.ui.pages import Browser, Page, open_page
from tests.operator_world import OperatorWorld, sample

_BASIC = "/clusters/tc/default/basic"
_STEPS = [
    {"pod": "basic-tikv-1", "component": "tikv", "act": "starts", "begins": 0, "ends": 9},
    {"pod": "basic-tikv-0", "component": "tikv", "act": "restarts", "begins": 30, "ends": None},
]
_GAPS = [{"component": "tidb", "begins": 15, "seconds": 3, "ready": 0, "needed": 1}]
_LOWEST = [{"component": "tikv", "before": 1, "lowest": 0}]


class Recorded(Rehearsals):
    """Rehearsals that have ended, with texts of a hostile server; it remembers the commands."""

    def __init__(self, text: str = "") -> None:
        super().__init__([])
        self.commands: list[Sequence[str]] = []
        self._text = text

    def __call__(self, arguments: Sequence[str]) -> Json:
        """See `Rehearse`."""
        self.commands.append(arguments)
        common = {"cluster": f"TidbCluster default/basic{self._text}", "lowest": _LOWEST, "steps": _STEPS}
        if arguments[0] == "plan":
            found = {"end": "stuck", "seconds": 60, "message": f"no room{self._text}", "gaps": _GAPS, "warnings": []}
            return {"clusters": [common | found], "differences": [f"Not in the twin: {self._text}."]}
        stops = [{"component": "tidb", "begins": 3, "seconds": 40, "ready": 0, "needed": 1}]
        found = {"end": "done", "reason": "X", "message": self._text, "whole": 43, "stops": stops}
        return {"moments": [{"clusters": [common | found | {"regions": [], "failovers": []}]}], "differences": []}


class _Broken(Rehearsals):
    """Rehearsals whose documents lack everything."""

    def __call__(self, arguments: Sequence[str]) -> Json:
        """See `Rehearse`."""
        return {}


@contextmanager
def _basic(running: OperatorWorld, rehearsals: Rehearsals) -> Iterator[Browser]:
    with open_page(Client(ReadOnly(running.world.transport())), rehearsals=rehearsals) as browser:
        yield browser


def test_the_form_for_a_change_shows_the_cluster_as_it_is_and_rehearses_nothing(running: OperatorWorld) -> None:
    with _basic(running, recorded := Recorded()) as browser:
        page = browser.page(f"{_BASIC}/plan")
        shown = {
            each.attributes["name"]: each.attributes["value"]
            for each in page.every("input")
            if "name" in each.attributes
        }
        assert {"pd": "1", "tikv": "1", "tidb": "1", "version": "v8.5.2"} == shown
        same = browser.page(f"{_BASIC}/plan?pd=1&tikv=&tidb=01&version=+v8.5.2+&frob=3")
    assert "Nothing would change." in same.text
    assert [] == recorded.commands


def test_a_change_is_rehearsed_and_can_be_copied(running: OperatorWorld) -> None:
    with _basic(running, recorded := Recorded()) as browser:
        page = browser.page(f"{_BASIC}/plan?pd=1&tikv=2&tidb=1&version=v8.5.3+%23")
    flags = ["--namespace=default", "--set=spec.tikv.replicas=2", '--set=spec.version="v8.5.3 #"']
    assert [["plan", "tc/basic", *flags]] == recorded.commands
    assert "Gets stuck after 60s: no room" in page.text
    assert "0s basic-tikv-1 starts, Ready after 9s" in page.text
    assert "30s basic-tikv-0 restarts, and is not Ready at the end" in page.text
    assert "15s TiDB has 0 of the 1 pods that it needs, for 3s" in page.text
    assert [("0.0", "15.0"), ("50.0", "50.0"), ("25.0", "5.0")] == [
        (each.attributes["x"], each.attributes["width"]) for each in page.every("rect")
    ]
    assert "Ready at least: TiKV 0 of 1." in page.text
    patch = """--patch={"spec": {"tikv": {"replicas": 2}, "version": "v8.5.3 #"}}'"""
    assert f"kubectl patch tidbcluster basic --namespace=default --type=merge '{patch}" == page.one("pre").text


def _plan_of(browser: Browser, fields: str, **asked: str) -> str:
    return f"{_BASIC}/plan?{urlencode({'fields': fields, **asked})}"


def test_other_fields_are_written_in_yaml(running: OperatorWorld) -> None:
    fields = "tikv: {config: {log-level: warn}, replicas: 3}\ntidb: {annotations: {a.b/c: x}}\npd: {limits: null}\n"
    with _basic(running, recorded := Recorded()) as browser:
        page = browser.page(_plan_of(browser, fields, tikv="2"))
        assert fields.split() == page.one("textarea").text.split()
    # an annotation's name has a dot, which a path cannot have
    assert [
        "--set=spec.tikv.replicas=3",
        '--set=spec.tikv.config.log-level="warn"',
        '--set=spec.tidb.annotations={"a.b/c": "x"}',
        "--set=spec.pd.limits=null",
    ] == recorded.commands[0][3:]


@pytest.mark.parametrize("fields", ["tikv", "[1]", "a: 1\n---\nb: 2", "spec: 1"])
def test_refuses_what_is_not_fields_of_spec(running: OperatorWorld, fields: str) -> None:
    with _basic(running, recorded := Recorded()) as browser:
        assert "Other fields: write fields of spec" in browser.page(_plan_of(browser, fields), 404).text
        assert "Other fields: not valid YAML: mapping values" in browser.page(_plan_of(browser, "a: b: c"), 404).text
    assert [] == recorded.commands


@pytest.fixture
def own() -> OperatorWorld:
    """A world whose cluster a test may change."""
    world = OperatorWorld()
    world.apply(sample("basic"))
    world.run_until_ready()
    return world


def _press(page: Page) -> str:
    """The address of the only button that writes."""
    (form,) = [each for each in page.every("form") if each.attributes.get("method") == "post"]
    return str(form.attributes["action"])


def test_a_planned_change_is_made_with_write(own: OperatorWorld) -> None:
    with open_page(own.admin, rehearsals=Recorded(), writes=True) as browser:
        button = _press(browser.page(_plan_of(browser, "tidb: {annotations: {a.b/c: x}}", tikv="2")))
        assert (303, _BASIC) == ((answer := browser.press(button)).status_code, answer.headers["location"])
        spec = own.admin.get(TIDB_CLUSTERS, "basic", "default").decode()["spec"]
        assert (2, {"a.b/c": "x"}) == (spec["tikv"]["replicas"], spec["tidb"]["annotations"])
        # the spec is another one now
        assert (409, True) == ((again := browser.press(button)).status_code, "Nothing is changed" in again.text)


def test_a_change_of_another_user_since_the_plan_stays(own: OperatorWorld) -> None:
    with open_page(own.admin, rehearsals=Recorded(), writes=True) as browser:
        button = _press(browser.page(_plan_of(browser, "", tikv="2")))
        own.admin.patch(TIDB_CLUSTERS, "basic", "default", {"spec": {"tikv": {"replicas": 4}}})
        assert "has changed since the plan was made" in browser.press(button).text
    assert 4 == own.admin.get(TIDB_CLUSTERS, "basic", "default").decode()["spec"]["tikv"]["replicas"]


def test_without_write_the_page_has_no_button_and_takes_no_change(running: OperatorWorld) -> None:
    with _basic(running, Recorded()) as browser:
        address = _plan_of(browser, "", tikv="2")
        assert [] == [each for each in browser.page(address).every("form") if each.attributes.get("method") == "post"]
        assert 405 == browser.press(f"{address}&generation=1").status_code


@pytest.mark.parametrize("asked", ["tikv=-1", "tikv=x", "tikv=1001", "tikv=%C2%B2", "tikv=1;pd=2"])
def test_refuses_what_is_no_number(running: OperatorWorld, asked: str) -> None:
    with _basic(running, recorded := Recorded()) as browser:
        assert "is no number of replicas" in browser.page(f"{_BASIC}/plan?{asked}", 404).text
    assert [] == recorded.commands


def test_a_loss_is_rehearsed(running: OperatorWorld) -> None:
    with _basic(running, recorded := Recorded()) as browser:
        form = browser.page(f"{_BASIC}/drill")
        options = [each.text for each in form.every("option")]
        assert {"node/node-0", "zone/zone-0", "pod/basic-tikv-0", "operator", "good", "10m"} <= set(options)
        assert [] == recorded.commands
        page = browser.page(f"{_BASIC}/drill?fail=zone/zone-1&for=10m")
    assert [["drill", "tc/basic", "--namespace=default", "--fail=zone/zone-1", "--for=10m"]] == recorded.commands
    assert "TiDB has 0 of the 1 pods that it needs, for 40s; whole again after 43s." in page.text
    assert "3s TiDB has 0 of the 1 pods that it needs, for 40s" in page.text
    chosen = [each.text for each in page.every("option") if "selected" in each.attributes]
    assert ["zone/zone-1", "10m"] == chosen


@pytest.mark.parametrize("asked", ["fail=node/nowhere", "fail=--help", "fail=operator&for=--help"])
def test_refuses_what_cannot_be_lost(running: OperatorWorld, asked: str) -> None:
    with _basic(running, recorded := Recorded()) as browser:
        browser.page(f"{_BASIC}/drill?{asked}", 404)
    assert [] == recorded.commands


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OperatorWorld, Path]]:
    """A world with the sample `basic`, and a kubeconfig for other processes."""
    world = OperatorWorld()
    world.apply(sample("basic"))
    world.run_until_ready()
    yield world, world.world.write_kubeconfig(tmp_path_factory.mktemp("served"), None)
    world.stop()


@pytest.mark.slow
def test_shows_what_the_commands_find(served: tuple[OperatorWorld, Path]) -> None:
    world, kubeconfig = served
    before = world.world.server.storage.version
    with open_page(world.admin, rehearsals=Rehearsals([f"--kubeconfig={kubeconfig}"])) as browser:
        plan = browser.page(f"{_BASIC}/plan?tikv=3")
        assert "2 pods start in about 11s; all components serve meanwhile." in plan.text
        drill = browser.page(f"{_BASIC}/drill?fail=pod/basic-tidb-0&for=1m")
        assert "TiDB has 0 of the 1 pods that it needs, for" in drill.text
    assert before == world.world.server.storage.version


@pytest.mark.slow
def test_says_why_a_rehearsal_is_impossible(running: OperatorWorld, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with _basic(running, Rehearsals([f"--kubeconfig={missing}"])) as browser:
        said = browser.page(f"{_BASIC}/plan?tikv=3", 404).one("main").text
    assert (True, False) == (str(missing) in said, "kubectl tidb:" in said)


@pytest.mark.parametrize("asked", ["plan?tikv=3", "drill?fail=operator"])
def test_a_document_that_cannot_be_shown_is_an_error_and_not_silence(running: OperatorWorld, asked: str) -> None:
    with _basic(running, _Broken([])) as browser:
        shown = browser.page(f"{_BASIC}/{asked}", 500)
    assert "This page has a defect KeyError: " in shown.text
    assert ["", "/"] == [each.attributes["href"] for each in shown.every("a")][-2:]


_STACK = 'Traceback (most recent call last):\n  File "x.py", line 1\nZeroDivisionError: division by zero'


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("printf '{\"clusters'", "the rehearsal printed no document (.*); the log of the command"),
        ("printf '\\377'", "the rehearsal printed no document (.*); the log of the command"),
        (f"echo '{_STACK}' >&2", "^the rehearsal has a defect: ZeroDivisionError: division by zero; the log of"),
        ("echo 'kubectl tidb: no such cluster' >&2", "^no such cluster$"),
        ("kill -9 $$", "^the rehearsal was interrupted$"),
    ],
)
def test_a_rehearsal_that_prints_no_document_says_why_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(Failure, match=message) as why:
        Rehearsals([])(["plan", "tc/basic"])
    assert "\n" not in str(why.value)


def test_a_rehearsal_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    with pytest.raises(Failure, match="this machine cannot start the rehearsal: No such file or directory"):
        Rehearsals([])(["plan", "tc/basic"])


def test_a_server_that_ends_starts_no_rehearsal() -> None:
    rehearsals = Rehearsals([])
    rehearsals.close()
    with pytest.raises(Failure, match="is ending"):
        rehearsals(["plan", "tc/basic"])
