"""The pages about one cluster, and about reasons."""

from datetime import UTC, date, datetime

import pytest

from apis import tso
from cli.doctor.diagnosis import CAUSES
from cli.reasons.registry import REASONS
from cli.tidb.ui.cluster import Day, Range, calendar_of, ranges_of, view_of
from cli.tidb.ui.templating import templates
from kube.client import Client
from kube.objects import Json
from ports.transport import Request, Response, Transport
from tests.apis.backups import by_br
from tests.cli.tidb.objects import LONG_AGO, cluster, condition, facts, store
from tests.cli.tidb.test_hostile_texts import Hostile
from tests.cli.tidb.typing_commands import Listing, ReadOnly, Refusing
from tests.cli.tidb.ui.pages import Page, open_page
from tests.cli.tidb.ui.test_overview import HOSTILE
from tests.operator_world import OperatorWorld

_BASIC = "/clusters/tc/default/basic"


def _page(transport: Transport, path: str = _BASIC, status: int = 200) -> Page:
    with open_page(Client(transport)) as browser:
        return browser.page(path, status)


def test_the_overview_links_a_cluster(running: OperatorWorld) -> None:
    links = [each.attributes["href"] for each in _page(running.world.transport(), "/").every("a")]
    assert _BASIC in links


def test_shows_pods_by_zone_and_node_and_writes_nothing(running: OperatorWorld) -> None:
    reader = ReadOnly(running.world.transport())
    page = _page(reader)
    (tikv,) = [each for each in page.every("li") if each.text.startswith("basic-tikv-0 ")]
    assert "basic-tikv-0 Running, Ready store 1 Up, 30 leaders" == tikv.text
    headings = [each.text for each in page.every("h1", "h2", "h3", "h4")]
    assert headings[:3] == ["basic", "Components", "Pods"]
    assert [f"Zone zone-{at}" for at in range(3)] == [each for each in headings if each.startswith("Zone")]
    assert [f"node-{at}" for at in range(3)] == [each for each in headings if each.startswith("node")]
    assert {"basic", "pods", "events", "backups", "backupschedules", "tidbmonitors", "nodes"} <= reader.read


def test_shows_what_doctor_finds_and_the_way_out(running: OperatorWorld) -> None:
    page = _page(Refusing(ReadOnly(running.world.transport()), "storageclasses"), f"{_BASIC}/doctor")
    (cause,) = [each for each in CAUSES if each.reason == "QoSNotGuaranteed"]
    sections = [each.text for each in page.every("div") if each.text.startswith(f"Warning: {cause.reason}")]
    assert sections
    assert all(f"Way out: {cause.way_out.replace('`', '')}" in each for each in sections)
    assert any("Pod basic-pd-0" in each for each in sections)
    assert "Not read storageclasses.storage.k8s.io:" in page.text


def test_names_what_the_user_may_not_read(running: OperatorWorld) -> None:
    page = _page(Refusing(running.world.transport(), "nodes", "backups", "events"))
    assert "Zone unknown" in page.text
    assert ["events", "backups", "backupschedules", "nodes"] == [
        each.text.partition(":")[0] for each in page.every("li") if each.text.endswith("you may not list them")
    ]


def test_a_reason_leads_to_its_explanation(running: OperatorWorld) -> None:
    running.change(paused=True)
    running.run_until(lambda: running.reason("basic") == "Paused")
    try:
        page = _page(running.world.transport())
    finally:
        running.change(paused=None)
        running.run_until_ready()
    assert "/reasons/Paused" in [each.attributes["href"] for each in page.every("a")]
    explained = _page(running.world.transport(), "/reasons/Paused")
    assert ["Paused"] == [each.text for each in explained.every("h1")]
    assert REASONS["Paused"].means.replace("`", "").split()[0] in explained.text


def test_every_reason_has_a_page_in_the_list() -> None:
    made = templates()
    linked = Page(made.get_template("reasons.html").render(topics={"All": REASONS})).every("a")
    assert {f"/reasons/{name}" for name in REASONS} <= {each.attributes["href"] for each in linked}
    for name, reason in REASONS.items():
        page = Page(made.get_template("reason.html").render(name=name, reason=reason))
        assert "`" not in page.text, name
        assert all(each.text not in ("", name) for each in page.every("a")), name


def test_what_does_not_exist_has_no_page(running: OperatorWorld) -> None:
    transport = running.world.transport()
    missing = _page(transport, "/clusters/tc/default/nowhere", 404)
    assert "no TidbCluster nowhere in namespace default; there is basic" in missing.text
    assert "a cluster is named NAME, or tc/NAME or dc/NAME" in _page(transport, "/clusters/x/default/basic", 404).text
    assert "Not Found" in _page(transport, "/reasons/Nothing", 404).text


@pytest.mark.parametrize("view", ["", "/doctor"])
def test_shows_hostile_texts_of_all_objects_as_text(running: OperatorWorld, view: str) -> None:
    hostile = Hostile(running.world.transport(), HOSTILE)
    page = _page(hostile, _BASIC + view)
    assert hostile.texts
    assert ["/static/page.js"] == [each.attributes["src"] for each in page.every("script")]
    assert page.text.count("<script src=//evil.example></script>") > 2
    assert page.text.isprintable()
    assert not {each for element in page.elements for each in element.attributes if each.startswith("on")}
    assert not [each for each in page.every("a") if "evil" in str(each.attributes["href"])]


def _backup(name: str, mode: str, **status: object) -> Json:
    meta = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": meta, "spec": by_br(backupMode=mode, br={"cluster": "shop"}), "status": status}


def _snapshot(hour: int, **br: str) -> Json:
    made = _backup(f"at-{hour}", "snapshot", commitTs=_ts(hour), conditions=[{"type": "Complete", "status": "True"}])
    made["spec"]["br"] |= br
    return made


def _ts(hour: int) -> str:
    return str(tso.of_time(_at(hour)))


def _at(hour: int) -> datetime:
    return datetime(2026, 1, 1, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        ([], []),
        ([_snapshot(1)], []),
        ([_snapshot(5), _snapshot(3), _snapshot(1)], [Range("log", _at(3), _at(9))]),
        ([_snapshot(5, cluster="other")], []),
        (
            [_snapshot(5), {"metadata": {"name": "x", "namespace": "default"}, "spec": {"br": 1}}],
            [Range("log", _at(5), _at(9))],
        ),
    ],
)
def test_a_log_restores_from_its_first_snapshot_on(snapshots: list[Json], expected: list[Range]) -> None:
    log = _backup("log", "log", commitTs=_ts(0), logCheckpointTs=_ts(9), logSuccessTruncateUntil=_ts(2))
    assert expected == list(ranges_of(facts(cluster(), backups=[log, *snapshots])))


def test_a_calendar_shows_what_ended_on_each_day_and_which_days_a_log_reaches() -> None:
    log = _backup("log", "log", commitTs=_ts(0), logCheckpointTs=_ts(9))
    late = _backup("late", "snapshot", phase="Failed", timeStarted="2025-12-29T23:30:00-01:00")
    others = _backup("other", "snapshot", phase="Complete", timeCompleted="2026-01-02T00:00:00Z")
    others["spec"]["br"]["cluster"] = "other"
    good = [_snapshot(hour) for hour in (1, 2)]
    for backup in good:
        backup["status"] |= {"phase": "Complete", "timeCompleted": "2026-01-01T02:10:00Z"}
    view = view_of(facts(cluster(), backups=[log, late, others, *good]), {})
    calendar = calendar_of(view, date(2026, 1, 2))
    days = {day.date: day for week in calendar for day in week}
    assert (date(2025, 12, 1), date(2026, 1, 4)) == (min(days), max(days))
    assert [7] * 5 == [len(week) for week in calendar]
    assert Day(date(2026, 1, 1), 2, 0, restorable=True) == days[date(2026, 1, 1)]
    assert Day(date(2025, 12, 30), 0, 1, restorable=False) == days[date(2025, 12, 30)]
    assert Day(date(2026, 1, 2), 0, 0, restorable=False) == days[date(2026, 1, 2)]
    assert [] == calendar_of(view, date(2026, 3, 2))
    text = (
        templates().get_template("cluster.html").render(view=view, change=None, calendar=calendar, ago=lambda _: "0s")
    )
    assert "2 complete" in text
    assert "any time" in text


class Everything(Listing):
    """A server with the cluster `shop`, about which a status has every part; its user may not list nodes."""

    def __init__(self) -> None:
        counts = {"name": "data", "boundCount": 3, "modifiedCapacity": "2Gi", "modifiedStorageClass": "fast"}
        lost = {"podName": "shop-tikv-9", "storeID": "9", "createdAt": LONG_AGO, "hostDown": True}
        tikv = {
            "phase": "Scale",
            "stores": {"2": store(2)},
            "failureStores": {"9": lost},
            "volumes": {"data": counts | {"modifiedCount": 2, "resizedCount": 1}},
            "conditions": [condition("Observed", "PDSilent", holds=False)],
        }
        conditions = [
            condition("Ready", "PDUnhealthy", "PD has no quorum.", holds=False),
            condition("Progressing", "RollingUpdate", "waiting for shop-tikv-2", holds=True),
            condition("CertificatesValid", "ExpiresWithin7Days", "Secret a expires.", holds=False),
            condition("SettingsOverridden", "SettingsOverridden", "spec.tidb.config.store has no effect."),
        ]
        self._found = cluster(status={"conditions": conditions, "tikv": tikv}).object
        schedule = {"schedule": "0 2 * * *", "backupTemplate": {"br": {"cluster": "shop"}}}
        meta = {"namespace": "default"}
        ready = [condition("Ready", "Ready", "It matches its spec.")]
        monitor = {"spec": {"clusters": [{"name": "shop"}]}, "status": {"conditions": ready}}
        event = {
            "type": "Warning",
            "reason": "Evicted",
            "message": "A pod left.",
            "count": 3,
            "lastTimestamp": LONG_AGO,
        }
        backups = [
            _snapshot(3) | {"status": _snapshot(3)["status"] | {"phase": "Complete", "timeCompleted": LONG_AGO}},
            _backup("log", "log", commitTs=_ts(0), logCheckpointTs=_ts(9)),
            _backup("late", "snapshot", phase="Failed", conditions=[condition("Failed", "X", "BR lost the storage.")]),
        ]
        super().__init__(
            tidbclusters=("TidbCluster", [self._found.decode()]),
            dmclusters=("DMCluster", []),
            pods=("Pod", []),
            events=("Event", [{"metadata": meta | {"name": "e"}, **event}]),
            backups=("Backup", backups),
            backupschedules=("BackupSchedule", [{"metadata": meta | {"name": "nightly"}, "spec": schedule}]),
            tidbmonitors=("TidbMonitor", [{"metadata": meta | {"name": "watch"}, **monitor}]),
        )

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        if "/tidbclusters/shop" in request.url:
            return Response(200, {}, self._found.raw)
        if "/nodes" in request.url:
            return Response(403, {}, b"{}")
        return super().request(request)


def test_shows_every_part_of_a_status() -> None:
    page = _page(Everything(), "/clusters/tc/default/shop")
    assert [
        "Waits for",
        "Change under way",
        "Components",
        "Pods",
        "Replaced by failover",
        "Volumes being changed",
        "Without effect",
        "Certificates",
        "Backups",
        "Monitors",
        "Events",
        "Not shown",
    ] == [each.text for each in page.every("h2")]
    for expected in (
        "not Ready: PDUnhealthy for 0s PD has no quorum.",
        "cluster: RollingUpdate for 0s waiting for shop-tikv-2",
        "unknown, last seen 1/1 0s ago",
        "Not on a node shop-pd-0 Missing",
        "shop-tikv-2 Missing unknown (last seen Up)",
        "tikv shop-tikv-9 (9) 0s ago, its host is down",
        "tikv: 1 of 3 volumes data are 2Gi fast",
        "not valid ExpiresWithin7Days: Secret a expires.",
        "restorable to any time from 2026-01-01 03:00:00 to 2026-01-01 09:00:00 (UTC)",
        "at-3 snapshot Complete 0s ago",
        "late snapshot Failed: BR lost the storage.",
        "Schedule nightly (0 2 * * *): the operator has not looked at it yet",
        "watch Ready: It matches its spec.",
        "Warning: Evicted 0s ago, 3 times A pod left.",
        "nodes: you may not list them",
    ):
        assert expected in page.text
