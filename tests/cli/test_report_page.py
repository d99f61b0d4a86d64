"""`-o html` and `-o markdown` of `plan` and `drill`: foreign text stays text, and nothing is loaded."""

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from cli import drill, plan, report_page
from cli.plan import Basis, Plan
from cli.timeline import Bar, Timeline
from kube.field_change import FieldChange
from ports.foreign_text import printable
from rehearsal.damage import Damage, Failover, Outage
from rehearsal.drill import Drilled, Loss, Moment
from rehearsal.forecast import Floor, Forecast, Gap, Step

HOSTILE = (
    """x"><script src=//evil.example></script><img src=x onerror='alert(1)'>"""
    "&lt;]]><!--{{ 7*7 }}</style>\x1b[2J\u202e"
)
SEEN = printable(HOSTILE)

_SVG = "{http://www.w3.org/2000/svg}"
_ELEMENTS = frozenset(
    [
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "main",
            "section",
            "h1",
            "h2",
            "h3",
            "p",
            "div",
            "ul",
            "li",
        ),
        *("table", "thead", "tbody", "tr", "th", "td"),
        *(_SVG + name for name in ("svg", "style", "rect", "line", "text", "g", "title")),
    ]
)
_ATTRIBUTES = frozenset(
    [
        *("lang", "charset", "http-equiv", "content", "name", "class", "role", "aria-label", "aria-hidden", "tabindex"),
        *("width", "height", "rx", "x", "y", "x1", "x2", "y1", "y2", "text-anchor"),
    ]
)


def faults(page: str) -> list[str]:
    """What a page has that could act or load something. Raises ParseError if it is not well-formed."""
    return list(_faults(ElementTree.fromstring(page.removeprefix("<!doctype html>"))))


def _faults(root: Element) -> Iterator[str]:
    for each in root.iter():
        if each.tag not in _ELEMENTS:
            yield f"the element {each.tag}"
        yield from (f"the attribute {name}" for name in each.attrib if name not in _ATTRIBUTES)
        if each.tag.endswith("style") and re.search(r"url\(|@import|//|</", each.text or ""):
            yield "a style that loads something"


def steps(*pods: str) -> Sequence[Step]:
    """Restarts, one after the other, of which the last does not end."""
    ends = [20.0 * number + 9 for number in range(1, len(pods))]
    return [
        Step(pod, "tikv", "restarts", 20.0 * number, None if number == len(pods) else ends[number - 1])
        for number, pod in enumerate(pods, start=1)
    ]


def planned(text: str = "") -> Plan:
    forecast = Forecast(
        "stuck",
        f"no room {text}",
        90.0,
        steps(f"basic-tikv-1{text}", f"basic-tikv-0{text}"),
        [Floor("tikv", 2, 1), Floor("pd", 3, 3)],
        [Gap("tidb", 30.0, 45.0, 0, 1)],
        [f"spec.tidb.config {text} has no effect"],
    )
    basis = Basis(f"one node {text}", {}, [f"Not in the twin: {text}."])
    key = f"TidbCluster default/basic{text}"
    changes = {key: [FieldChange(f"spec.labels.{text}", None, text)], f"Secret x/{text}": [FieldChange("data.a", 1, 2)]}
    return Plan({key: forecast}, [f"TidbMonitor default/{text}"], basis, changes=changes)


def drilled(text: str = "") -> drill.Report:
    damage = Damage(
        "stuck",
        "StoreNotUp",
        f"waits {text}",
        None,
        [Outage("tidb", 3.0, None, 0, 1)],
        failovers=[Failover(f"basic-tikv-1{text}", "tikv", 60.0, f"basic-tikv-2{text}", 90.0)],
        floors=[Floor("tikv", 2, 1)],
        steps=steps(f"basic-tikv-2{text}"),
    )
    moments = [Drilled(Moment(at, f"restart of basic-tikv-0{text}"), {"TidbCluster x/y": damage}) for at in (0.0, 9.0)]
    return drill.Report(Loss("node", f"node-1{text}"), moments, Basis("one node", {}))


def element(page: str) -> Element:
    return ElementTree.fromstring(page.removeprefix("<!doctype html>"))


def cells(page: str) -> list[list[str]]:
    """The rows of all tables."""
    return [[cell.text or "" for cell in row] for row in element(page).iter("tr")]


@pytest.mark.parametrize(
    "page", [plan.html_of(planned(HOSTILE)), drill.html_of(drilled(HOSTILE))], ids=["plan", "drill"]
)
def test_foreign_text_stays_text_and_nothing_is_loaded(page: str) -> None:
    assert [] == faults(page)
    shown = "".join(element(page).itertext())
    assert SEEN in shown
    assert page.replace("\n", "").isprintable()
    policy = next(each.attrib["content"] for each in element(page).iter("meta") if "http-equiv" in each.attrib)
    assert "default-src 'none'; style-src 'unsafe-inline'" == policy


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("<main>", "<main><img src='x'/>", "the element img"),
        ('<p class="verdict', '<p onclick="alert(1)" class="verdict', "the attribute onclick"),
        (".drawing {", "@import 'x.css'; .drawing {", "a style that loads something"),
        (".drawing {", "p { background: url(x.png) } .drawing {", "a style that loads something"),
    ],
    ids=["element", "handler", "import", "image"],
)
def test_the_check_notices_a_planted_defect(right: str, wrong: str, fault: str) -> None:
    page = plan.html_of(planned(HOSTILE))
    assert right in page
    assert fault in faults(page.replace(right, wrong))


def test_a_page_without_escapes_is_noticed() -> None:
    with pytest.raises(ElementTree.ParseError):
        faults(plan.html_of(planned(HOSTILE)).replace("&lt;", "<"))


def test_the_page_of_a_plan_shows_what_the_plan_finds() -> None:
    page = plan.html_of(planned())
    verdict = next(each for each in element(page).iter("p") if each.get("class") == "verdict bad-edge")
    assert "Gets stuck after 90s: no room " == verdict.text
    assert "Warning: spec.tidb.config  has no effect" in page
    assert [
        ["At", "Pod", "Step"],
        ["20s", "basic-tikv-1", "restarts, Ready after 9s"],
        ["40s", "basic-tikv-0", "restarts, and is not Ready at the end"],
        ["Component", "Before", "At least"],
        ["TiKV", "2", "1"],
        ["PD", "3", "3"],
        ["At", "Component"],
        ["30s", "TiDB has 0 of the 1 pods that it needs, for 45s"],
    ] == cells(page)
    assert ['spec.labels.: null → ""'] == [each.text for each in element(page).iter("li")]
    assert "<p>Secret x/: data.a changed</p>" in page
    assert "Not rehearsed: TidbMonitor default/." in page


def test_the_page_of_a_drill_shows_every_moment() -> None:
    rows = cells(drill.html_of(drilled()))
    assert ["3s", "TiDB has 0 of the 1 pods that it needs, to the end"] in rows
    assert ["60s", "TiKV: the operator gives basic-tikv-1 up and starts basic-tikv-2, Ready after 30s"] in rows
    assert ["0s", "9s"] == [row[0] for row in rows if row[1] == "restart of basic-tikv-0"]


def test_each_bar_of_a_drawing_has_a_text_alternative_and_its_place() -> None:
    drawing = ElementTree.fromstring(plan.timeline_of(*planned().forecasts.values()).drawing("Timeline of basic"))
    bars = [each for each in drawing.iter(f"{_SVG}g") if each.get("role") == "img"]
    assert [
        "20s: basic-tikv-1 restarts, Ready after 9s",
        "40s: basic-tikv-0 restarts, and is not Ready at the end",
        "30s: TiDB has 0 of the 1 pods that it needs, for 45s",
    ] == [bar.findtext(f"{_SVG}title") for bar in bars]
    places = [(each.get("class"), each.get("x"), each.get("width")) for bar in bars for each in bar.iter(f"{_SVG}rect")]
    assert [("restarts", "22.2%", "10.0%"), ("restarts", "44.4%", "55.6%"), ("lacks", "33.3%", "50.0%")] == places[1::2]
    assert ("group", "Timeline of basic") == (drawing.get("role"), drawing.get("aria-label"))


@pytest.mark.parametrize(
    ("seconds", "marks"),
    [
        (0.5, ["0s"]),
        (9.0, ["0s", "2s", "4s", "6s", "8s"]),
        (385.0, ["0s", "2m", "4m", "6m"]),
        (864_000.0, ["0s", "2d", "4d", "6d", "8d", "10d"]),
    ],
)
def test_a_scale_has_room_on_a_phone(seconds: float, marks: list[str]) -> None:
    drawing = ElementTree.fromstring(Timeline([Bar("x", "starts", "starts", 0.0, seconds)]).drawing("x"))
    assert marks == [each.text for each in drawing.iter(f"{_SVG}text") if each.get("class") == "scale"]


def test_a_plan_without_steps_has_neither_timeline_nor_tables() -> None:
    quiet = Plan({"TidbCluster x/y": Forecast("done", "", 0.0)}, [], Basis("one node", {}))
    page = plan.html_of(quiet)
    assert (0, []) == (page.count("<svg"), cells(page))
    assert "No pod restarts, starts or leaves." in page


def test_a_step_of_no_time_is_still_seen() -> None:
    line = Timeline([Bar("x", "leaves", "leaves", 100.0, 100.0)])
    assert (99.0, 1.0) == line.place(line.bars[0])
    assert 'x="99.0" width="1.0"' in line.strip(line.bars[0])


def test_a_table_without_rows_is_left_out() -> None:
    assert "" == report_page.table("Steps", ("At", "Pod"), [])


_REFERRING = (
    "![x](https://evil.example) @everyone #1 `a|b` *c* _d_ ~~e~~ $f$ <img> &lt; www.evil.example \n\n# g \x1b[2J"
)


@pytest.mark.parametrize(
    "text", [plan.markdown_of(planned(_REFERRING)), drill.markdown_of(drilled(_REFERRING))], ids=["plan", "drill"]
)
def test_markdown_shows_foreign_text_as_it_is(text: str) -> None:
    assert text.replace("\n", "").isprintable()
    assert "&#91;x&#93;(https&#58;//evil.example) @<!-- -->everyone #<!-- -->1 &#96;a&#124;b&#96; &#42;c&#42;" in text
    assert "&#126;&#126;e&#126;&#126; &#36;f&#36; &lt;img&gt; &amp;lt; www&#46;evil.example" in text
    foreign = text.replace("**", "").replace("<!-- -->", "")
    assert set() == {*"*`[]~$<_"} & {*foreign}
    lines = text.splitlines()
    assert 1 == sum(each.startswith("**TidbCluster ") for each in lines)
    tables = [each.count("|") for each in lines if each.startswith("| ")]
    assert {3, 4} >= {*tables}
    assert [] == [each for each in lines if each.startswith(("#", ">", "    "))]
