"""The log compared with the trace of writes: every write has its line, every line its write, and a few of them show
what happened. Statuses, events and leases have no lines: the log reports waits, failovers and readiness instead."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import structlog
from structlog.contextvars import merge_contextvars
from structlog.testing import LogCapture

from controllers.status_pacing import DETAILS
from kube.events import WARNING
from kube.resources import CONFIG_MAPS, STATEFUL_SETS
from ports.clock import FakeClock
from rehearsal.operator import SETTINGS
from tests.controllers.tidbcluster.test_failover import NODES, QUICKLY, cluster, node_of
from tests.operator_world import OPERATOR, OperatorWorld

pytestmark = pytest.mark.slow

MOST_LINES = 40

Line = tuple[str, ...]

VERBS = {"create": "object created", "patch": "object patched", "delete": "object deleted"}

REQUESTS = (
    (r"POST /pd/api/v1/leader/transfer/.+", "PD leader transfer begun"),
    (r"DELETE /pd/api/v1/members/id/\d+", "PD member removed"),
    (r"DELETE /pd/api/v1/store/\d+", "store removal begun"),
    (r"POST /pd/api/v1/store/\d+/state", "store removal taken back"),
    (r"POST /pd/api/v1/store/\d+/label", "labels of a store set"),
    (r"POST /pd/api/v1/schedulers", "eviction of leaders begun"),
    (r"DELETE /pd/api/v1/schedulers/.+", "eviction of leaders ended"),
    (r"POST /labels", "labels of a TiDB server set"),
    (r"POST /upgrade/start", "TiDB asked to pause DDL"),
    (r"POST /upgrade/finish", "TiDB asked to resume DDL"),
)
"""A request of the operator to the data plane, and the line that reports it."""

OF_DISCOVERY = ("a pod may start", "a pod must wait")
STATUS_LINES = ("waiting", "failing", "refused", "waiting while all serve")
"""Lines whose sentence is one of the status."""


class Story:
    """A world whose log is kept."""

    def __init__(self, world: OperatorWorld, capture: LogCapture) -> None:
        self.world = world
        self._capture = capture

    def begin(self) -> None:
        """Forget the log and the writes."""
        self._capture.entries.clear()
        self.world.forget()

    def lines(self, *levels: str) -> list[dict[str, Any]]:
        """The operator's log, by default without -v=4, and without Discovery's lines."""
        kept = levels or ("info", "warning", "error", "critical")
        own = [e for e in self._capture.entries if "key" in e and e["event"] not in OF_DISCOVERY]
        return [dict(e) for e in own if e["log_level"] in kept]

    def told(self, event: str) -> list[dict[str, Any]]:
        """The lines of one event."""
        return [line for line in self.lines() if line["event"] == event]

    def written(self, *, bookkeeping: bool) -> list[Line]:
        """The line that each write to the API server should have; without `bookkeeping`, as at the default level."""
        lines: list[Line] = []
        for entry in self.world.world.server.audit.recent():
            call = entry.call
            if call.user != OPERATOR or not call.is_write or call.subresource or entry.code >= 400:
                continue
            body: Any = msgspec.json.decode(call.request.body or b"{}")
            metadata = body.get("metadata", {}).keys() - {"uid", "resourceVersion"}
            is_mark = call.verb == "patch" and body.keys() == {"metadata"} and metadata <= {"labels", "annotations"}
            if call.resource != "events" and (bookkeeping or not is_mark):
                lines.append((VERBS[call.verb], call.resource.partition(".")[0], call.name or body["metadata"]["name"]))
        return lines

    def asked(self) -> list[str]:
        """The line that each request which changes the data plane should have."""
        return [_line_of(request.method, request.url) for request in self.world.operator.dataplane.writes()]

    def sentences(self) -> str:
        """All written statuses as one text."""
        calls = (entry.call for entry in self.world.world.server.audit.recent())
        bodies = (call.request.body or b"" for call in calls if call.subresource == "status")
        return b"\n".join(bodies).decode()

    def check(self) -> None:
        """Each write has its line, and each line its write."""
        for bookkeeping, levels in ((False, ()), (True, ("debug", "info"))):
            lines = [line for line in self.lines(*levels) if line["event"] in VERBS.values()]
            assert self.written(bookkeeping=bookkeeping) == [
                (line["event"], _plural(line["kind"]), line["name"]) for line in lines
            ]
        asked = {what for _, what in REQUESTS}
        assert self.asked() == [line["event"] for line in self.lines() if line["event"] in asked]
        # a sentence is a detail of a condition: an event that ended before its stage ran is in no status
        ended, sentences = self.told("wait ended"), self.sentences()
        brief = {line["stage"] for line in ended if line["seconds"] < DETAILS.first}
        for line in self.lines():
            if line["event"] in STATUS_LINES and line["stage"] not in brief:
                assert msgspec.json.encode(line["message"]).decode()[1:-1] in sentences, line
        known = {*VERBS.values(), *asked, *STATUS_LINES}
        known |= {"wait ended", "no longer refused", "failover recorded", "failover ended", "Ready changed"}
        # a PD member that knows no leader takes three seconds to say so
        known |= {"servers of the object answer slowly", "servers of the object answer promptly again"}
        assert set() == {line["event"] for line in self.lines()} - known

    def check_waits(self) -> None:
        """Every beginning has an end, with its duration."""
        begun = [line["stage"] for line in self.lines() if line["event"] in STATUS_LINES]
        ended = [line["stage"] for line in self.lines() if line["event"] in ("wait ended", "no longer refused")]
        assert set(begun) == set(ended)
        assert all(line["seconds"] >= 0 for line in self.told("wait ended"))


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"


def _line_of(method: str, url: str) -> str:
    asked = f"{method} {urlsplit(url).path}"
    (line,) = [what for pattern, what in REQUESTS if re.fullmatch(pattern, asked)]
    return line


@pytest.fixture
def beginning(clock: FakeClock) -> Iterator[Story]:
    """A world of six nodes without a cluster."""
    capture = LogCapture()
    structlog.configure(processors=[merge_contextvars, capture])
    world = OperatorWorld(clock=clock, nodes=NODES, settings=replace(SETTINGS, failover=QUICKLY))
    yield Story(world, capture)
    world.stop()


@pytest.fixture
def story(beginning: Story) -> Story:
    """A cluster of three PD, three TiKV and two TiDB, Ready."""
    world = beginning.world
    world.apply(cluster())
    world.run_until_ready()
    world.run(60.0)
    beginning.begin()
    return beginning


def test_logs_the_creation_of_a_cluster_object_by_object(beginning: Story) -> None:
    world = beginning.world
    world.apply(cluster())
    world.run_until_ready()
    beginning.check()
    beginning.check_waits()
    assert ["False", "True"] == [line["status"] for line in beginning.told("Ready changed")]
    claims = {line["claim"] for line in beginning.told("object patched") if line["kind"] == "PersistentVolume"}
    assert 6 == len(claims)


def test_logs_scaling_roll_and_failover_in_forty_lines(story: Story) -> None:
    world = story.world
    world.change(tikv={"replicas": 4})
    world.run(5.0)
    world.run_until_ready()
    (patched,) = [line for line in story.told("object patched") if line["kind"] == "StatefulSet"]
    assert ("basic-tikv", "spec.replicas: 3 → 4") == (patched["name"], patched["change"])
    assert {"key": "default/basic", "stage": "tikv"}.items() <= patched.items()

    world.change(tikv={"config": '[log]\nlevel = "warn"\n'})
    world.run(5.0)
    world.run_until_ready()
    world.run(30.0)
    story.check_waits()
    pods = [f"basic-tikv-{ordinal}" for ordinal in (3, 2, 1, 0)]
    assert pods == [line["pod"] for line in story.told("eviction of leaders begun")]
    assert pods == [line["pod"] for line in story.told("eviction of leaders ended")]
    restarts = [line for line in story.told("object patched") if "restarts" in line]
    assert pods == [line["restarts"] for line in restarts]
    assert {"spec.tikv.config: the configuration changed"} == {line["cause"] for line in restarts}

    world.world.faults.node_gone(node_of(world, "basic-tikv-1"))
    world.run(600.0)
    (recorded,) = story.told("failover recorded")
    assert ("tikv", "basic-tikv-1") == (recorded["component"], recorded["pod"])
    assert ["TiKVFailedOver"] == [line["reason"] for line in story.told("waiting while all serve")]

    story.check()
    assert MOST_LINES >= len(story.lines()), "\n".join(map(str, story.lines()))


def test_logs_an_upgrade_in_forty_lines_and_emits_normal_events(story: Story) -> None:
    world = story.world
    world.change(version="v8.5.3")
    world.run(5.0)
    world.run_until_ready(within=300.0)
    world.run(30.0)

    story.check()
    story.check_waits()
    assert MOST_LINES >= len(story.lines()), "\n".join(map(str, story.lines()))
    events = world.events()
    assert [] == [event for event in events if event["type"] == WARNING]
    restarted = [event["message"] for event in events if event["reason"] == "RestartingPod"]
    change = 'spec.template.spec.containers[0].image: "pingcap/pd:v8.5.2" → "pingcap/pd:v8.5.3"'
    assert f"restarting pod basic-pd-2 ({change}); 0 of 3 pods of pd are up to date" == restarted[0]
    assert restarted[3].startswith("evicting leaders from pod basic-tikv-2 (store ")
    assert restarted[5].endswith("; 2 of 3 pods of tikv are up to date")
    finished = [event["message"] for event in events if event["reason"] == "RollFinished"]
    assert f"all 3 pods of pd are up to date ({change})" == finished[0]
    # one for each pod, and one for each component
    told = [event for event in events if event["reason"] in ("RestartingPod", "RollFinished")]
    assert 3 + 3 + 2 + 3 == sum(event["count"] for event in told)


def test_logs_a_scale_in_and_a_lost_pd_member(story: Story) -> None:
    world = story.world
    world.change(tikv={"replicas": 4})
    world.run(5.0)
    world.run_until_ready()
    world.change(tikv={"replicas": 3})
    world.run(5.0)
    world.run_until_ready()
    (removed,) = story.told("store removal begun")
    assert "basic-tikv-3" == removed["pod"]
    (lowered,) = [line for line in story.told("object patched") if line["change"] == "spec.replicas: 4 → 3"]
    assert "PD has no store for pod basic-tikv-3; the TidbCluster, read live, asks for it" == lowered["why"]

    heal = world.world.faults.node_gone(node_of(world, "basic-pd-2"))
    world.run(300.0)
    heal()
    world.run_until_ready(within=300.0)
    (removed, _) = story.told("PD member removed")
    assert ("basic-pd-2", True) == (removed["member"], "PD has a healthy majority without basic-pd-2" in removed["why"])
    assert ["PersistentVolumeClaim", "Pod"] == [line["kind"] for line in story.told("object deleted")][:2]
    assert ["pd"] == [line["component"] for line in story.told("failover ended")]
    story.check()
    story.check_waits()


def test_logs_a_foreign_change_with_its_correction(story: Story) -> None:
    world = story.world
    world.admin.patch(STATEFUL_SETS, "basic-tikv", "default", {"spec": {"replicas": 4}})
    world.run(5.0)
    world.run_until_ready()
    restart = {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}
    world.admin.patch(STATEFUL_SETS, "basic-tidb", "default", {"spec": restart})
    world.run(5.0)
    world.run_until_ready()
    lowered, restored = [line for line in story.told("object patched") if line["kind"] == "StatefulSet"][:2]
    assert ("basic-tikv", "spec.replicas: 4 → 3") == (lowered["name"], lowered["change"])
    assert ("basic-tidb", "ForeignEdit") == (restored["name"], story.told("waiting")[-1]["reason"])
    story.check()
    story.check_waits()


def test_recreates_a_deleted_config_map_with_one_log_line(story: Story) -> None:
    world = story.world
    (name,) = [each["metadata"]["name"] for each in world.every(CONFIG_MAPS) if "-tikv-" in each["metadata"]["name"]]
    world.admin.delete(CONFIG_MAPS, name, "default")
    world.run(30.0)
    assert [("object created", name)] == [(line["event"], line["name"]) for line in story.lines()]


@pytest.mark.rule("I29")
def test_an_idle_cluster_logs_nothing_at_any_level(story: Story) -> None:
    story.world.run(600.0)
    assert [] == story.lines("debug", "info", "warning", "error")


def test_logs_no_password(story: Story) -> None:
    secret = "hunter2"
    env, annotation = {"name": "MYSQL_PWD", "value": secret}, {"note": f"user:{secret}"}
    world = story.world
    world.change(tidb={"env": [env], "config": f'[log]\nslow-query-file = "{secret}"\n'})
    world.run(5.0)
    world.run_until_ready()
    world.change(tidb={"env": [env | {"value": f"{secret}!"}], "annotations": annotation | {"note": "none"}})
    world.run(5.0)
    world.run_until_ready()
    assert secret not in str(story.lines("debug", "info", "warning"))
