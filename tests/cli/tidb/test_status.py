"""`status`: a user's view of a cluster, from the objects read."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from msgspec import structs

from apis.cluster import ClusterCondition
from apis.times import parse_time
from cli.failures import Failure
from cli.tidb.ages import length
from cli.tidb.clusters import Found
from cli.tidb.output import rendered
from cli.tidb.pods import ClusterPod
from cli.tidb.status.facts import Facts
from cli.tidb.status.page import page_of, page_of_all
from cli.tidb.status.report import LastSeen, Member, Unread
from cli.tidb.status.reporting import report_of, summary
from kube.client import Client
from kube.errors import Forbidden
from kube.objects import Json
from kube.resources import EVENTS, TIDB_CLUSTERS
from sandbox.waiting_clock import WaitingClock
from tests.cli.tidb.objects import LONG_AGO, cluster, condition, dm_cluster, facts, pod, store
from tests.cli.tidb.typing_commands import Listing, Refusing, Terminal
from tests.operator_world import OperatorWorld, sample


def time(text: str) -> datetime:
    found = parse_time(text)
    assert found
    return found


NOW = time("2026-01-01T00:03:20Z")


def page(told: Facts, width: int = 80) -> str:
    return rendered(page_of(report_of(told), NOW), width)


def test_lists_waits_with_cause_and_start_and_whether_the_user_must_act() -> None:
    status = {
        "conditions": [
            condition("Progressing", "StoresNotUp", "tikv: store 2 is Down"),
            condition("Ready", "TiKVStoreNotUp", "TiKV store(s) are not up; tikv: store 2 is Down", holds=False),
        ],
        "tikv": {"conditions": [condition("Progressing", "StoresNotUp", "store 2 is Down")]},
        "pd": {"conditions": [condition("Progressing", "PDConfig", "correct spec.pd.config", holds=False)]},
    }
    report = summary(cluster(status=status))
    assert [("pd", True), ("tikv", False)] == [(each.of, each.needs_user) for each in report.waits]
    assert "TiKV store(s) are not up" == report.message
    shown = page(facts(cluster(status=status)))
    assert "tikv: StoresNotUp for 3m\n  store 2 is Down\n" in shown
    assert "pd: PDConfig for 3m; it needs you\n  correct spec.pd.config\n" in shown


def test_lists_a_wait_of_the_whole_cluster() -> None:
    status = {"conditions": [condition("Progressing", "Paused", "discovery: spec.paused is true", holds=False)]}
    (wait,) = summary(cluster(status=status)).waits
    assert ("cluster", "Paused", LONG_AGO) == (wait.of, wait.reason, wait.since)


def test_a_cluster_without_a_status_says_that_the_operator_has_not_seen_it() -> None:
    report = report_of(facts(cluster()))
    assert (False, "the operator has not looked at it yet") == (report.ready, report.message)
    assert ["Missing"] * 4 == [each.state for each in report.pods]


def test_pods_show_their_node_state_restarts_and_member() -> None:
    crash = {
        "phase": "Running",
        "containerStatuses": [
            {"name": "tikv", "restartCount": 7, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {}}
        ],
    }
    leader = {"name": "shop-pd-0", "id": "9", "clientURL": "", "health": True}
    status = {
        "pd": {"synced": True, "members": {"shop-pd-0": leader}, "leader": leader},
        "tikv": {"synced": True, "stores": {"0": store(0), "1": store(1, "Down", 0), "7": store(7, "Offline", 3)}},
    }
    pods = [
        pod("pd", "shop-pd-0"),
        pod("tikv", "shop-tikv-0", annotations={"tidb.pingcap.com/evict-leader": "none"}),
        pod("tikv", "shop-tikv-1", crash),
        pod("tikv", "shop-tikv-2", {"phase": "Pending"}, node=""),
    ]
    shown = page(facts(cluster(status=status), pods))
    for line in (
        "shop-pd-0    node-1  Running           healthy, leads",
        "shop-tikv-0  node-1  Running           store 0 Up, 10 leaders",
        "                                       evict-leader=none",
        "shop-tikv-1  node-1  CrashLoopBackOff  store 1 Down, 0 leaders",
        "                     7 restarts",
        "shop-tikv-2          Pending",
        "shop-tikv-7          Missing           store 7 Offline, 3 leaders",
    ):
        assert f"{line}\n" in shown


STALE: Json = {
    "synced": False,
    "statefulSet": {"readyReplicas": 1},
    "conditions": [condition("Observed", "PDUnreachable", "connection refused", holds=False)],
}
"""The status of every component whose members cannot be asked."""


_VOTER: Json = {"id": "1", "clientURL": "", "health": True}
_LAST_SEEN: Mapping[str, Json] = {
    "pd": {"members": {"shop-pd-0": _VOTER | {"name": "shop-pd-0"}}, "leader": _VOTER | {"name": "shop-pd-0"}},
    "tikv": {"stores": {"0": store(0)}},
    "tiflash": {"stores": {"0": store(0) | {"podName": "shop-tiflash-0"}}},
    "tidb": {"members": {"shop-tidb-0": {"name": "shop-tidb-0", "health": True}}},
    "tiproxy": {"members": {"shop-tiproxy-0": {"name": "shop-tiproxy-0", "health": True}}},
    "ticdc": {"captures": {"shop-ticdc-0": {"id": "c", "isOwner": True, "ready": True}}},
    "pump": {"members": [{"nodeId": "n", "host": "shop-pump-0.shop-pump:8250", "state": "online"}]},
    "dm-master": {"members": {"sync-dm-master-0": _VOTER | {"name": "sync-dm-master-0"}}},
    "dm-worker": {"members": {"sync-dm-worker-0": {"stage": "bound"}}},
}
"""For each component, a member that was healthy at its last answer."""


def stale(kind: str) -> Found:
    """A cluster whose component of this kind had a healthy member, and no longer answers."""
    part = _LAST_SEEN[kind] | STALE
    if kind.startswith("dm-"):
        return dm_cluster({kind.removeprefix("dm-"): part})
    usual: Json = {"replicas": 1, "requests": {"storage": "1Gi"}, "storageClaims": []}
    spec = {"version": "v8.5.2", **dict.fromkeys(("pd", "tikv", kind), usual)}
    return cluster(spec=spec, status={kind: part})


@pytest.mark.parametrize("kind", _LAST_SEEN)
def test_members_that_do_not_answer_are_unknown_with_their_last_state(kind: str) -> None:
    name = f"{'sync' if kind.startswith('dm-') else 'shop'}-{kind}-0"
    told = facts(stale(kind), [pod(kind, name)])
    report = report_of(told)
    part = next(each for each in report.components if each.name == kind)
    (member,) = [each.member for each in report.pods if each.name == name]
    assert (None, None, LastSeen(1, 1, LONG_AGO)) == (part.members, part.healthy, part.last_seen)
    assert member is not None
    assert ("unknown", None, False, -1) == (member.state, member.healthy, member.leads, member.leaders)
    assert "?/1 (last seen 1/1, 3m ago)" in " ".join(page(told, 120).split())
    assert f"unknown (last seen {member.last_state})" in page(told, 120)


def test_no_number_of_an_unobserved_component_is_green() -> None:
    told = facts(stale("pd"), [pod("pd", "shop-pd-0")])
    shown = rendered(page_of(report_of(told), NOW), 120, colours=True)
    (line,) = [line for line in shown.splitlines() if line.startswith("pd ")]
    green, yellow = "\x1b[32m", "\x1b[33m"
    assert f"{yellow}?/1 (last seen 1/1, 3m ago)" in line
    assert f"{green}?" not in line


def test_synced_false_marks_the_members_as_last_seen() -> None:
    leader = {"name": "shop-pd-0", "id": "9", "clientURL": "", "health": True}
    status = {"pd": {"synced": False, "members": {"shop-pd-0": leader}}}
    assert "?/1 (last seen 1/1)" in page(facts(cluster(status=status)), 120)


def test_an_unready_capture_does_not_make_the_others_unknown() -> None:
    captures = {f"shop-ticdc-{ordinal}": {"id": str(ordinal), "ready": ordinal == 0} for ordinal in range(2)}
    spec: Json = {"version": "v8.5.2", "ticdc": {"replicas": 2}}
    told = facts(cluster(spec=spec, status={"ticdc": {"synced": False, "captures": captures}}))
    (part,) = [each for each in report_of(told).components if each.name == "ticdc"]
    assert (2, 1, None) == (part.members, part.healthy, part.last_seen)


@pytest.mark.parametrize("conditions", [[], [condition("Observed", "Observed")]], ids=["absent", "True"])
def test_members_that_answer_are_shown_without_a_question_mark(conditions: list[Json]) -> None:
    leader = {"name": "shop-pd-0", "id": "9", "clientURL": "", "health": True}
    status = {"pd": {"synced": True, "members": {"shop-pd-0": leader}, "conditions": conditions}}
    assert "?" not in page(facts(cluster(status=status), [pod("pd", "shop-pd-0")]))


@pytest.mark.parametrize(
    "pods",
    [
        [pod("pd", "shop-pd-0", {"phase": "Pending"}, node="")],
        [pod("pd", "shop-pd-0", {"phase": "Failed"})],
        [],
    ],
    ids=["pending", "failed", "missing"],
)
def test_the_member_of_a_stopped_pod_is_down_and_does_not_lead(pods: list[ClusterPod]) -> None:
    leader = {"name": "shop-pd-0", "id": "9", "clientURL": "", "health": True}
    status = {"pd": {"synced": True, "members": {"shop-pd-0": leader}, "leader": leader}}
    (shown,) = [each for each in report_of(facts(cluster(status=status), pods)).pods if each.component == "pd"]
    assert Member("9", "down", False, last_state="healthy") == shown.member


def test_a_sidecar_that_cannot_start_does_not_make_a_member_down() -> None:
    containers = [
        {"name": "pd", "state": {"running": {"startedAt": LONG_AGO}}},
        {"name": "shipper", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
    ]
    waits = pod("pd", "shop-pd-0", {"phase": "Pending", "containerStatuses": containers})
    leader = {"name": "shop-pd-0", "id": "9", "clientURL": "", "health": True}
    status = {"pd": {"synced": True, "members": {"shop-pd-0": leader}, "leader": leader}}
    assert "healthy, leads" in page(facts(cluster(status=status), [waits]))


_LOST = "PD has lost its quorum: 1 of 3 members is running. The database cannot serve."


def test_the_headline_names_the_outage_and_its_duration() -> None:
    status = {"conditions": [condition("Ready", "PDQuorumLost", f"{_LOST}; pd: the rest", holds=False)]}
    first, second, *_ = page(facts(cluster(status=status))).splitlines()
    assert "TidbCluster default/shop  v8.5.2  not Ready: PDQuorumLost for 3m  age 3m" == first
    assert _LOST == second


def test_the_line_of_an_unready_cluster_shows_the_reason_and_unknown_parts() -> None:
    found = stale("pd")
    found.cluster.status.conditions.append(
        ClusterCondition(
            type="Ready", status="False", reason="PDQuorumLost", message=_LOST, last_transition_time=LONG_AGO
        )
    )
    shown = rendered(page_of_all([summary(found)], NOW, with_namespace=False))
    assert "shop     no     pd 1/1 members ?  PDQuorumLost 3m\n" in shown


def test_terminating_and_unready_pods_are_not_called_running() -> None:
    pods = [
        pod("pd", "shop-pd-0", deletionTimestamp=LONG_AGO),
        pod("tikv", "shop-tikv-0", {"phase": "Running", "conditions": []}),
    ]
    report = report_of(facts(cluster(), pods))
    assert [("Terminating", False), ("NotReady", False)] == [(each.state, each.ready) for each in report.pods[:2]]


def test_members_of_each_component_show_their_own_states() -> None:
    spec: Json = {"version": "v8.5.2", "ticdc": {"replicas": 1}, "tidb": {"replicas": 1}}
    spec |= {"pump": {"replicas": 1, "requests": {"storage": "1Gi"}}, "pdms": [{"name": "tso", "replicas": 1}]}
    status = {
        "ticdc": {"synced": True, "captures": {"shop-ticdc-0": {"id": "c", "isOwner": True, "ready": True}}},
        "tidb": {"members": {"shop-tidb-0": {"name": "shop-tidb-0", "health": False}}},
        "pump": {"members": [{"nodeId": "n", "host": "shop-pump-0.shop-pump:8250", "state": "online"}]},
        "pdms": {"tso": {"name": "tso", "synced": True, "members": ["http://shop-tso-0.shop-tso-peer:2379"]}},
    }
    pods = [pod(name, f"shop-{name}-0") for name in ("ticdc", "tidb", "pump", "tso")]
    told = {
        each.name: (each.member.state, each.member.leads)
        for each in report_of(facts(cluster(spec=spec, status=status), pods)).pods
        if each.member
    }
    expected = {
        "shop-ticdc-0": ("ready", True),
        "shop-tidb-0": ("unhealthy", False),
        "shop-pump-0": ("online", False),
        "shop-tso-0": ("registered", False),
    }
    assert expected == told


def test_shows_masters_and_workers_of_dm_as_members() -> None:
    leader = {"name": "sync-dm-master-0", "id": "1", "clientURL": "", "health": True}
    status = {
        "master": {"synced": True, "members": {"sync-dm-master-0": leader}, "leader": leader},
        "worker": {
            "synced": True,
            "members": {"sync-dm-worker-0": {"name": "sync-dm-worker-0", "addr": "", "stage": "bound"}},
            "failureMembers": {"sync-dm-worker-1": {"podName": "sync-dm-worker-1", "createdAt": LONG_AGO}},
        },
    }
    pods = [pod("dm-master", "sync-dm-master-0"), pod("dm-worker", "sync-dm-worker-0")]
    report = report_of(facts(dm_cluster(status), pods))
    assert {"healthy", "bound"} == {each.member.state for each in report.pods if each.member}
    assert [("dm-worker", "sync-dm-worker-1")] == [(each.component, each.pod) for each in report.failures]


@pytest.mark.rule("9")
def test_lists_members_that_failover_has_replaced() -> None:
    record = {"podName": "shop-tikv-1", "storeID": "1", "createdAt": LONG_AGO, "hostDown": True}
    lost = {"podName": "shop-pd-0", "memberID": "9", "createdAt": LONG_AGO}
    status = {"tikv": {"failureStores": {"1": record}}, "pd": {"failureMembers": {"shop-pd-0": lost}}}
    shown = page(facts(cluster(status=status)))
    assert "Replaced by failover\n  pd shop-pd-0 (9), 3m ago\n  tikv shop-tikv-1 (1), 3m ago, host down\n" in shown


@pytest.mark.rule("12")
def test_lists_volumes_only_while_they_change() -> None:
    counts = {"name": "tikv", "boundCount": 3, "modifiedCapacity": "2Gi", "modifiedStorageClass": "fast"}
    changing = {"tikv": {"volumes": {"tikv": counts | {"modifiedCount": 2, "resizedCount": 1}}}}
    done = {"tikv": {"volumes": {"tikv": counts | {"modifiedCount": 3, "resizedCount": 3}}}}
    shown = page(facts(cluster(status=changing)))
    assert "Volumes being changed\n  tikv: 1 of 3 volumes tikv are 2Gi, fast\n" in shown
    assert not report_of(facts(cluster(status=done))).volumes


@pytest.mark.rule("9.1")
def test_shows_certificates_only_with_a_condition_about_them() -> None:
    assert report_of(facts(cluster())).certificates is None
    status = {"conditions": [condition("CertificatesValid", "ExpiresWithin7Days", "Secret a/b, key tls.crt, ...")]}
    assert "Certificates\n  ExpiresWithin7Days: Secret a/b" in page(facts(cluster(status=status)))


def test_lists_settings_without_effect_until_they_are_corrected() -> None:
    message = "spec.tidb.config.store has no effect"
    told = condition("SettingsOverridden", "SettingsOverridden", message) | {"status": "True"}
    corrected = told | {"status": "False"}
    assert f"Without effect\n  {message}" in page(facts(cluster(status={"conditions": [told]})))
    assert [] == report_of(facts(cluster(status={"conditions": [corrected]}))).without_effect


def test_lists_the_operators_changes_that_wait_for_a_restart() -> None:
    pending = condition("ChangesPending", "ChangesPending", "pd (spec changed)") | {"status": "True"}
    assert "Waits for a restart\n  pd (spec changed)" in page(facts(cluster(status={"conditions": [pending]})))
    over = pending | {"status": "False"}
    assert [] == report_of(facts(cluster(status={"conditions": [over]}))).pending


@pytest.mark.rule("4.4")
@pytest.mark.parametrize(
    ("group", "shown"),
    [
        ("apps.pingcap.com/v1", "0/3 without 1"),
        ("apps/v1", "tikv.tidb.pingcap.com/delete-slots: the cluster's Stateful"),
    ],
)
def test_shows_delete_slots_or_that_they_have_no_effect(group: str, shown: str) -> None:
    found = cluster()
    metadata = structs.replace(found.cluster.metadata, annotations={"tikv.tidb.pingcap.com/delete-slots": "[1,7]"})
    owner = {"apiVersion": group, "kind": "StatefulSet", "name": "shop-tikv", "uid": "3", "controller": True}
    slotted = replace(found, cluster=structs.replace(found.cluster, metadata=metadata))
    assert shown in page(facts(slotted, [pod("tikv", "shop-tikv-0", ownerReferences=[owner])]))


def test_lists_settings_without_effect_of_backups_and_schedules() -> None:
    told = condition("FieldsIgnored", "FieldsIgnored", "spec.storageSize has no effect") | {"status": "True"}
    mine, other = backup("mine", "Complete"), backup("other", "Complete", br={"cluster": "other"})
    nightly = {"metadata": {"name": "nightly"}, "spec": {"schedule": "", "backupTemplate": mine["spec"]}, "status": {}}
    for each in (mine, other, nightly):
        each["status"]["conditions"] = [told]
    shown = report_of(facts(cluster(), backups=[mine, other], schedules=[nightly])).without_effect
    assert [f"{name}: spec.storageSize has no effect" for name in ("Backup mine", "BackupSchedule nightly")] == shown


def backup(name: str, phase: str, completed: str = "", **spec: object) -> Json:
    status = {"phase": phase, "timeStarted": LONG_AGO, "timeCompleted": completed, "conditions": []}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"br": {"cluster": "shop"}, **spec},
        "status": status | {"commitTs": "44", "backupSizeReadable": "3 GB", "logCheckpointTs": spec.get("ts", "")},
    }


def test_shows_the_last_good_backup_the_unfinished_ones_and_the_next_due_time() -> None:
    backups = [
        backup("old", "Complete", "2026-01-01T00:01:00Z"),
        backup("new", "Complete", "2026-01-01T00:02:00Z"),
        backup("bad", "Failed"),
        backup("log", "Running", backupMode="log", ts="45"),
        backup("other", "Complete", "2026-01-01T00:03:00Z", br={"cluster": "other"}),
        backup("far", "Complete", "2026-01-01T00:03:00Z", br={"cluster": "shop", "clusterNamespace": "team"}),
    ]
    schedule = {
        "metadata": {"name": "nightly", "namespace": "default"},
        "spec": {"schedule": "0 2 * * *", "backupTemplate": {"br": {"cluster": "shop"}}},
        "status": {"conditions": [condition("Active", "Waiting", "the next backup is due at 2026-01-01T02:00:00Z")]},
    }
    shown = page(facts(cluster(), backups=backups, schedules=[schedule]))
    assert "Backups\n  last good: new (snapshot) 80s ago, 3 GB, as of 44\n" in shown
    assert "  bad (snapshot) Failed\n" in shown
    assert "  log (log) Running, up to 45\n" in shown
    assert "  schedule nightly (0 2 * * *): the next backup is due at 2026-01-01T02:00:00Z\n" in shown
    assert not any(name in shown for name in ("old", "other", "far"))


def test_an_export_belongs_to_the_cluster_whose_tidb_it_reads() -> None:
    exported = backup("csv", "Complete", LONG_AGO, br=None)
    exported["spec"]["from"] = {"host": "shop-tidb.default.svc", "secretName": "s"}
    elsewhere = backup("csv-2", "Complete", LONG_AGO, br=None)
    elsewhere["spec"]["from"] = {"host": "shop-tidb.team", "secretName": "s"}
    good = report_of(facts(cluster(), backups=[exported, elsewhere])).backups.last_good
    assert good is not None
    assert "csv" == good.name


def test_lists_monitors_that_name_the_cluster() -> None:
    def monitor(name: str, *clusters: Json) -> Json:
        status = {"conditions": [condition("Ready", "Ready", "the object matches its spec")]}
        meta = {"name": name, "namespace": "default"}
        return {"metadata": meta, "spec": {"clusters": list(clusters)}, "status": status}

    monitors = [monitor("one", {"name": "shop"}), monitor("two", {"name": "shop", "namespace": "team"})]
    assert ["one"] == [each.name for each in report_of(facts(cluster(), monitors=monitors)).monitors]


def test_shows_a_wait_of_all_components_once() -> None:
    paused = [condition("Progressing", "Paused", "Paused: edits wait", holds=False)]
    status = {"conditions": paused, "pd": {"conditions": paused}, "tikv": {"conditions": paused}}
    assert 1 == page(facts(cluster("shop", {}, status))).count("Paused: edits wait")


@pytest.mark.slow
def test_shows_no_event_of_an_earlier_cluster_of_the_same_name(terminal: Terminal, running: OperatorWorld) -> None:
    involved = {"kind": "TidbCluster", "name": "basic", "namespace": "default", "uid": "of-another-one"}
    event = {"metadata": {"name": "old"}, "involvedObject": involved, "reason": "FailedValidation", "message": "old"}
    running.admin.create(EVENTS, event, "default")
    shown = terminal.type("status", "basic")
    assert ("SuccessfulCreate" in shown, "FailedValidation" in shown) == (True, False)
    running.admin.delete(EVENTS, "old", "default")


def test_lists_the_last_events_oldest_first_and_shortens_them_only_on_pages() -> None:
    def event(number: int) -> Json:
        message = f"number {number} " + "and more " * 40
        at = f"2026-01-01T00:00:{number:02}Z"
        return {"metadata": {}, "lastTimestamp": at, "reason": "R", "message": message, "type": "Normal", "count": 2}

    told = facts(cluster(), events=[event(number) for number in (9, 3, 4, 5, 6, 7, 8)])
    assert [5, 6, 7, 8, 9] == [int(each.message.split()[1]) for each in report_of(told).events]
    assert all(len(each.message) > 300 for each in report_of(told).events)
    assert "2 times: number 9 and more" in page(told)
    assert "[...]" in page(told)


def test_a_page_fits_80_columns_despite_long_texts() -> None:
    long, sentence = "x" * 60, "a sentence that goes on and on " * 20 + "https://" + "y" * 120
    spec: Json = {"version": "v8.5.2", "tikv": {"replicas": 2, "requests": {"storage": "1Gi"}, "baseImage": long * 3}}
    status = {
        "conditions": [condition("Ready", long, sentence), condition("CertificatesValid", long, sentence)],
        "tikv": {"conditions": [condition("Progressing", long, sentence)], "failureStores": {"1": {"podName": long}}},
    }
    pods = [pod("tikv", f"{long}-tikv-0", node=f"{long}.compute.internal")]
    event = {"metadata": {}, "lastTimestamp": LONG_AGO, "reason": long, "message": sentence}
    told = facts(cluster(long, spec, status), pods, events=[event], backups=[backup(long, "Failed")])
    told.unread.append(Unread("backups", sentence))
    assert all(len(line) <= 80 for line in page(told).splitlines())


@pytest.mark.parametrize(
    "span", [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172800, "2d"), (-5, "0s")]
)
def test_an_age_has_the_largest_unit_that_gives_at_least_two(span: tuple[int, str]) -> None:
    seconds, text = span
    assert text == length(timedelta(seconds=seconds))


# the command


@pytest.mark.slow
def test_shows_one_cluster(terminal: Terminal) -> None:
    shown = terminal.type("status", "basic")
    assert shown.startswith("TidbCluster default/basic  v8.5.2  Ready")
    assert "basic-pd-0" in shown
    assert "SuccessfulCreate" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_the_document_has_the_parts_of_the_page_and_more(terminal: Terminal) -> None:
    document = terminal.document("status", "basic")
    assert ("TidbCluster", "default", "basic", True) == tuple(
        document[each] for each in ("kind", "namespace", "name", "ready")
    )
    assert ["pd", "tikv", "tidb"] == [each["name"] for each in document["components"]]
    assert {"id", "state", "healthy", "leads", "leaders", "lastState"} == document["pods"][1]["member"].keys()


def test_shows_one_line_for_each_cluster(terminal: Terminal) -> None:
    shown = terminal.type("status")
    assert "CLUSTER  READY  COMPONENTS  WAITS\nbasic    yes    pd 1/1\n" in shown
    assert terminal.type("status", "-A").startswith("NAMESPACE  CLUSTER")
    assert ["basic"] == [each["name"] for each in terminal.document("status", "-A")["clusters"]]
    assert "no cluster in namespace elsewhere\n" == terminal.type("status", "-n", "elsewhere")
    assert {"clusters": []} == terminal.document("status", "-n", "elsewhere")


def test_lists_only_clusters_with_problems_on_request(terminal: Terminal, running: OperatorWorld) -> None:
    assert "no cluster with problems in any namespace\n" == terminal.type("status", "-A", "--problems")
    new = sample("basic")
    new["metadata"]["name"] = "new"
    running.admin.create(TIDB_CLUSTERS, new, "default")
    try:
        assert ["new"] == [each["name"] for each in terminal.document("status", "--problems")["clusters"]]
    finally:
        running.admin.delete(TIDB_CLUSTERS, "new", "default")


@pytest.mark.parametrize("flag", ["--all-namespaces", "--problems"])
def test_a_flag_for_lists_is_refused_beside_a_cluster(terminal: Terminal, flag: str) -> None:
    with pytest.raises(Failure, match=f"{flag} is for a list of clusters: leave it or basic out"):
        terminal.type("status", "basic", flag)


def test_names_the_resources_that_the_user_may_not_read(
    running: OperatorWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(Client(Refusing(running.world.transport(), "events", "backups")), capsys, running.clock)
    shown = terminal.type("status", "basic")
    assert "basic-pd-0" in shown
    assert "Not shown\n  events: you may not list them\n  backups: you may not list them\n" in shown


def test_fails_if_the_user_may_not_read_the_cluster(running: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(Client(Refusing(running.world.transport(), "tidbclusters")), capsys, running.clock)
    with pytest.raises(Forbidden):
        terminal.type("status", "basic")


def test_reports_an_undecodable_cluster_and_shows_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = cluster("shop").object.decode(), cluster("odd").object.decode()
    bad["spec"]["pd"] = "three"
    server = Listing(tidbclusters=("TidbCluster", [bad, good]), dmclusters=("DMCluster", []))
    terminal = Terminal(Client(server), capsys)
    assert "shop     no     pd 0/1" in terminal.type("status")
    assert terminal.complaints.startswith("TidbCluster default/odd cannot be read: spec.pd: ")


def test_watch_refreshes_until_it_is_interrupted(running: OperatorWorld, capsys: pytest.CaptureFixture[str]) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        running.clock.step(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    terminal = Terminal(running.admin, capsys, WaitingClock(running.clock, wait))
    with pytest.raises(KeyboardInterrupt):
        terminal.type("status", "-w")
    assert [2.0, 2.0] == waits
    assert 2 == capsys.readouterr().out.count("basic    yes")
