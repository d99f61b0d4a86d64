"""The page in Chromium: accessible at every width, usable with a keyboard, and live.

With SCREENSHOTS=DIR, the tests leave pictures of every view at three widths in that directory.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page as Tab
from playwright.sync_api import ViewportSize, sync_playwright

from cli import drill, plan
from cli.tidb.ui.command import page_of_sandbox
from kube.client import Client
from kube.objects import Json
from ports.clock import SystemClock
from ports.transport import Request, Response
from tests.cli import test_report_page as reports
from tests.cli.tidb.objects import condition
from tests.cli.tidb.test_hostile_texts import Hostile
from tests.cli.tidb.typing_commands import Listing
from tests.cli.tidb.ui.pages import Browser, open_page
from tests.cli.tidb.ui.test_cluster import Everything
from tests.cli.tidb.ui.test_overview import HOSTILE, clusters, one_cluster
from tests.cli.tidb.ui.test_whatif import Recorded
from tests.e2e.operators import ROOT
from tests.operator_world import OperatorWorld

pytestmark = pytest.mark.slow

_AXE = ROOT / "hack" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BASIC = "/clusters/tc/default/basic"
_PHONE = ViewportSize(width=360, height=740)
_DESK = ViewportSize(width=1280, height=800)
_WALL = ViewportSize(width=3840, height=2160)


def _required(path: str | None, way_out: str) -> str:
    """The path of a tool that exists; skips without it."""
    if path is None and os.environ.get("REQUIRE_EVERYTHING"):
        pytest.fail(f"{way_out}; it is required here")
    if path is None:
        pytest.skip(way_out)
    return path


@pytest.fixture(scope="module")
def axe() -> str:
    found = _required(str(_AXE) if _AXE.exists() else None, "no axe-core: run `make axe`")
    return Path(found).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    program = _required(found, "no Chromium: install it (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        # root may start it without its sandbox only
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def _tab(
    chromium: Chromium, page: Browser, size: ViewportSize = _DESK, *, dark: bool = False
) -> AbstractContextManager[Tab]:
    """A tab that has opened the address with the token. See `_opened`."""
    return _opened(chromium, page.address, page.origin, size, dark=dark)


@contextmanager
def _opened(chromium: Chromium, address: str, origin: str, size: ViewportSize, *, dark: bool) -> Iterator[Tab]:
    """A tab that has opened an address.

    It fails the test if the page asks another origin, opens a dialog, or complains on the console.
    """
    with chromium.new_context(viewport=size, color_scheme="dark" if dark else "light") as context:
        tab, complaints = context.new_page(), list[str]()
        tab.set_default_timeout(20_000)
        tab.on("console", lambda said: complaints.append(said.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        tab.on("request", lambda sent: complaints.append(sent.url) if not sent.url.startswith(origin) else None)
        tab.goto(address)
        yield tab
        assert [] == complaints


_OVERLAPS = """() => {
  const boxes = [], isControl = (element) => element.matches("button, input, select, textarea");
  const add = (element, what, {left, right, top, bottom}) => {
    const visible = (element.closest(".wide") ?? document.documentElement).getBoundingClientRect();
    left = Math.max(left, visible.left);
    right = Math.min(right, visible.right);
    if (right - left > 1 && bottom - top > 1) boxes.push({element, what, left, right, top, bottom});
  };
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("svg, .hidden, .skip, [hidden], option, optgroup")) continue;
    if (isControl(element)) add(element, element.name || element.innerText, element.getBoundingClientRect());
    for (const node of element.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || !node.data.trim()) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const line of range.getClientRects()) add(element, node.data.trim(), line);
    }
  }
  const holds = (one, other) => one === other || (isControl(one) && one.contains(other));
  const belong = (one, other) => holds(one.element, other.element) || holds(other.element, one.element);
  const meet = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
    && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 3;
  return boxes.flatMap((one, at) => boxes.slice(at + 1)
    .filter((other) => meet(one, other) && !belong(one, other))
    .map((other) => `${one.what.slice(0, 40)} / ${other.what.slice(0, 40)}`));
}"""
"""The texts and controls that lie over each other. Lines may touch: their boxes are higher than their letters."""


def _assert_fits(tab: Tab, view: str) -> None:
    """Nothing on a page lies over something else or needs a horizontal scroll bar, from a telephone to a wall."""
    for size in (_PHONE, _DESK, _WALL):
        tab.set_viewport_size(size)
        assert size["width"] == tab.evaluate("document.documentElement.scrollWidth"), (view, size)
        assert [] == tab.evaluate(_OVERLAPS), (view, size)
        if directory := os.environ.get("SCREENSHOTS"):
            (Path(directory) / f"{view}-{size['width']}.png").write_bytes(tab.screenshot(full_page=True))


def _violations(tab: Tab, axe: str) -> list[str]:
    """What axe finds, each with the first element concerned."""
    tab.evaluate(axe)
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {each['nodes'][0]['html']}" for each in found["violations"]]


class _Changing(Listing):
    """A server whose list of clusters a test changes."""

    def __init__(self, *clusters: Json) -> None:
        super().__init__()
        self.clusters = clusters

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        return clusters(*self.clusters).request(request)


_UNREADY = condition("Ready", "TiKVStoreNotUp", "A store is down.", holds=False)
_WAITS = condition("Progressing", "StoreNotUp", "TiKV store 4 is Down.", holds=False)
_READY = condition("Ready", "Ready", "It serves.")


@pytest.mark.parametrize(("size", "dark"), [(_PHONE, False), (_DESK, True), (_WALL, False)], ids=["360", "1280", "4K"])
def test_every_view_is_accessible_and_fits(
    running: OperatorWorld, chromium: Chromium, axe: str, size: ViewportSize, *, dark: bool
) -> None:
    with open_page(running.admin) as page, _tab(chromium, page, size, dark=dark) as tab:
        for path in ("/", _BASIC, f"{_BASIC}/doctor", "/reasons", "/reasons/PDUnhealthy"):
            tab.goto(page.origin + path)
            assert [] == _violations(tab, axe), path
            assert size["width"] == tab.evaluate("document.documentElement.scrollWidth"), path


_VIEWS: Mapping[str, str] = {
    "overview": "/",
    "cluster": _BASIC,
    "doctor": f"{_BASIC}/doctor",
    "plan": f"{_BASIC}/plan?tikv=2",
    "drill": f"{_BASIC}/drill?fail=node/node-0",
    "reasons": "/reasons",
    "reason": "/reasons/PDUnhealthy",
    "error": "/clusters/tc/default/nowhere",
}


def test_nothing_overlaps_from_a_telephone_to_a_wall(running: OperatorWorld, chromium: Chromium) -> None:
    with open_page(running.admin, rehearsals=Recorded()) as page, chromium.new_context() as context:
        tab = context.new_page()
        tab.goto(page.address)
        for view, path in _VIEWS.items():
            tab.goto(page.origin + path)
            _assert_fits(tab, view)


@pytest.mark.parametrize("size", [_PHONE, _DESK], ids=["360", "1280"])
def test_hostile_texts_stay_text_and_fit(
    running: OperatorWorld, chromium: Chromium, axe: str, size: ViewportSize
) -> None:
    hostile = Client(Hostile(running.world.transport(), HOSTILE + "x" * 300))
    with open_page(hostile) as page, _tab(chromium, page, size) as tab:
        for path in ("/", _BASIC, f"{_BASIC}/doctor"):
            tab.goto(page.origin + path)
            assert [] == _violations(tab, axe), path
            assert size["width"] == tab.evaluate("document.documentElement.scrollWidth"), path
            assert "<script src=//evil.example>" in tab.inner_text("main")
            assert 0 == tab.locator("main script, main img, main iframe").count()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_troubles_are_accessible(chromium: Chromium, axe: str, *, dark: bool) -> None:
    recorded = Recorded(HOSTILE + "x" * 300)
    with open_page(Client(Everything()), rehearsals=recorded) as page, _tab(chromium, page, _PHONE, dark=dark) as tab:
        for path, awaited in (("/", "PD has no quorum."), ("/clusters/tc/default/shop", "Left: Gets stuck after 60s")):
            tab.goto(page.origin + path)
            # what is left of a change is rehearsed in the background, and appears without a click
            tab.get_by_text(awaited).first.wait_for()
            assert [] == _violations(tab, axe), path
            _assert_fits(tab, f"troubles-{'dark' if dark else 'light'}{path.replace('/', '-')}")
            tab.set_viewport_size(_PHONE)


def test_a_keyboard_reaches_everything(chromium: Chromium) -> None:
    listed = clusters(one_cluster("a", _UNREADY, _WAITS), one_cluster("b", _READY))
    with open_page(Client(listed)) as page, _tab(chromium, page) as tab:
        tab.keyboard.press("Tab")
        assert "Skip to content" == tab.locator(":focus").inner_text()
        assert tab.locator(":focus").bounding_box()["x"] >= 0  # type: ignore[index]  # it is shown
        tab.keyboard.press("Enter")
        assert "main" == tab.evaluate("document.activeElement.id")
        tab.goto(page.origin)
        reached = []
        for _ in range(tab.locator("a, button").count()):
            tab.keyboard.press("Tab")
            reached.append(tab.locator(":focus").inner_text())
            assert "none" != tab.evaluate("getComputedStyle(document.activeElement).outlineStyle"), reached
        assert ["Overview", "Reasons", "Pause updates", "a", "TiKVStoreNotUp"] == reached[2:7]
        assert "b" == reached[-1]


def test_a_change_appears_and_the_focus_stays(chromium: Chromium) -> None:
    server = _Changing(one_cluster("a", _UNREADY), one_cluster("b", _READY))
    with open_page(Client(server)) as page, _tab(chromium, page) as tab:
        tab.clock.install()
        tab.reload()
        tab.get_by_role("link", name="b", exact=True).focus()
        server.clusters = (one_cluster("a", _UNREADY, _WAITS), one_cluster("b", _READY))
        tab.clock.run_for(3000)
        tab.get_by_text("TiKV store 4 is Down.").wait_for()
        assert "b" == tab.locator(":focus").inner_text()


def test_updates_pause_until_they_are_resumed(chromium: Chromium) -> None:
    server = _Changing(one_cluster("a", _READY))
    with open_page(Client(server)) as page, _tab(chromium, page) as tab:
        tab.clock.install()
        tab.reload()
        button = tab.get_by_role("button", name="Pause updates")
        button.press("Space")
        assert "true" == button.get_attribute("aria-pressed")
        server.clusters = (one_cluster("z", _READY),)
        tab.clock.run_for(9000)
        assert tab.get_by_role("heading", name="a", exact=True).is_visible()
        button.press("Space")
        tab.clock.run_for(3000)
        tab.get_by_role("heading", name="z", exact=True).wait_for()


def test_says_that_what_is_shown_is_old_once_the_server_has_ended(chromium: Chromium) -> None:
    with chromium.new_context() as context:
        tab = context.new_page()
        tab.clock.install()
        with open_page(Client(clusters(one_cluster("a", _READY)))) as page:
            tab.goto(page.address)
        tab.clock.run_for(3000)
        tab.get_by_role("status").get_by_text("what you see is old").wait_for()
        assert tab.get_by_role("heading", name="a", exact=True).is_visible()


def test_a_plan_follows_from_a_form_and_a_drill_from_a_click(
    running: OperatorWorld, chromium: Chromium, axe: str
) -> None:
    recorded = Recorded(HOSTILE + "x" * 300)
    with open_page(running.admin, rehearsals=recorded) as page, _tab(chromium, page, _PHONE) as tab:
        tab.goto(f"{page.origin}/clusters/tc/default/basic")
        tab.get_by_role("link", name="Plan", exact=True).click()
        assert [] == _violations(tab, axe)
        tab.get_by_label("tikv", exact=True).fill("2")
        tab.get_by_label("tikv", exact=True).press("Enter")
        tab.get_by_text("Gets stuck after 60s").wait_for()
        assert [] == _violations(tab, axe)
        assert _PHONE["width"] == tab.evaluate("document.documentElement.scrollWidth")
        tab.get_by_role("link", name="Status", exact=True).click()
        tab.get_by_role("link", name="Lose it? node node-0").click()
        tab.get_by_text("whole again after 43s").wait_for()
        assert [] == _violations(tab, axe)
        assert _PHONE["width"] == tab.evaluate("document.documentElement.scrollWidth")
    assert ["--set=spec.tikv.replicas=2", "--fail=node/node-0"] == [each[-1] for each in recorded.commands]


def test_a_slider_shows_its_plan_without_a_click(running: OperatorWorld, chromium: Chromium, axe: str) -> None:
    recorded = Recorded()
    with open_page(running.admin, rehearsals=recorded) as page, _tab(chromium, page, _PHONE) as tab:
        tab.goto(f"{page.origin}/clusters/tc/default/basic/plan")
        slider = tab.get_by_label("tikv, by a slider")
        slider.press("ArrowRight")
        slider.press("ArrowRight")
        assert "3" == tab.get_by_label("tikv", exact=True).input_value()
        tab.get_by_text("Gets stuck after 60s").wait_for()
        assert tab.url.endswith("tikv=3&tidb=1&version=v8.5.2&fields=")
        assert [] == _violations(tab, axe)
        assert _PHONE["width"] == tab.evaluate("document.documentElement.scrollWidth")
        tab.get_by_label("tikv", exact=True).fill("1")
        tab.get_by_text("Nothing would change.").wait_for()
        assert "1" == slider.input_value()
    assert ["--set=spec.tikv.replicas=3"] == [each[-1] for each in recorded.commands]


def test_a_node_is_lost_and_healed_in_the_playground(chromium: Chromium, axe: str, kubeconfig: Path) -> None:
    with page_of_sandbox(kubeconfig, SystemClock()) as address, _tab(chromium, Browser(address), _PHONE) as tab:
        tab.get_by_role("link", name="Playground").click()
        assert [] == _violations(tab, axe)
        tab.get_by_role("button", name="Lose node-1").click()
        tab.get_by_role("button", name="Heal node-lost node-1").wait_for()
        assert [] == _violations(tab, axe)
        _assert_fits(tab, "playground")
        tab.get_by_role("button", name="Heal node-lost node-1").click()
        tab.get_by_text("Nothing is broken.").wait_for()


@pytest.mark.parametrize(("size", "dark"), [(_PHONE, True), (_DESK, False)], ids=["360", "1280"])
def test_a_report_in_a_file_is_accessible_and_fits(
    tmp_path: Path, chromium: Chromium, axe: str, size: ViewportSize, *, dark: bool
) -> None:
    hostile = reports.HOSTILE + "x" * 300
    pages = (plan.html_of(reports.planned(hostile)), drill.html_of(reports.drilled(hostile)))
    for number, page in enumerate(pages):
        file = tmp_path / f"{number}.html"
        file.write_text(page, encoding="utf-8")
        with _opened(chromium, file.as_uri(), file.as_uri(), size, dark=dark) as tab:
            assert [] == _violations(tab, axe)
            assert size["width"] == tab.evaluate("document.documentElement.scrollWidth")
            assert reports.SEEN in tab.inner_text("main")
            assert 0 == tab.locator("script, img, iframe, link").count()
