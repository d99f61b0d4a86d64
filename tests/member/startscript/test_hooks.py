"""The hooks of pods that stop gracefully, under dash and bash (ADR 19)."""

import json
from pathlib import Path

import pytest

from apis.graceful_stop import GRACEFUL_STOP
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.startscript import hooks
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import SHELLS, Pod, Run, pod_of
from tests.member.startscript.test_all_scripts import shellcheck

MTLS = {"enabled": True, "enableDiscoveryMTLS": True}
CAPTURES = {"replicas": 2}
VARIANTS = [
    cluster(ticdc=CAPTURES),
    cluster(ticdc=CAPTURES, clusterDomain="c.local", tlsCluster=MTLS, acrossK8s=True),
    v2("PreferPDAddressesOverDiscovery", ticdc=CAPTURES, pdAddresses=["https://a:2379", "b:2379"]),
]
MARK = "var/lib/tikv/.graceful-stop"
EVICTING = '["balance-leader-scheduler", "evict-leader-scheduler"]'


def hooks_of(tc: TidbCluster) -> dict[str, str]:
    tc.metadata.annotations[GRACEFUL_STOP] = "true"
    made = {"pd": hooks.pd_hooks(tc), "tikv": hooks.tikv_hooks(tc), "ticdc": hooks.ticdc_hooks(tc)}
    return {f"{name} {kind}": hook["exec"]["command"][2] for name, each in made.items() for kind, hook in each.items()}


def stores(*pods: str, **states: str) -> str:
    """PD's answer, with the stores 1, 2 and so on."""
    listed = [
        {
            "store": {
                "id": number,
                "address": f"{pod}.demo-tikv-peer.ns.svc:20160",
                "labels": [{"key": "zone", "value": "a b"}],
                "status_address": f"{pod}.demo-tikv-peer.ns.svc:20180",
                "state_name": states.get(pod.replace("-", "_"), "Up"),
            },
            "status": {"leader_count": 3},
        }
        for number, pod in enumerate(pods, 1)
    ]
    return json.dumps({"count": len(pods), "stores": listed}, indent=2)


ALL = stores("demo-tikv-10", "demo-tikv-0", "demo-tikv-2")


def left(count: int) -> str:
    return json.dumps({"store": {"id": 2}, "status": {"region_count": 9, "leader_count": count, "x": 1}}, indent=2)


def run(pod: Pod, kind: str, *answers: tuple[int, str], tc: TidbCluster | None = None) -> Run:
    (pod.root / "var/lib/tikv").mkdir(exist_ok=True)
    pod.answers("curl", *answers)
    return pod.run(hooks_of(tc or cluster(ticdc=CAPTURES))[kind])


def requests(pod: Pod) -> list[str]:
    """The methods and paths of the calls of curl."""
    words = [call.split() for call in pod.calls("curl")]
    return [f"{each[each.index('--request') + 1]} {each[-1].partition('://')[2].partition('/')[2]}" for each in words]


@pytest.fixture(params=SHELLS)
def ticdc_pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    return pod_of("ticdc", tmp_path, request.param)


@pytest.mark.parametrize("tc", VARIANTS)
def test_hooks_are_clean_posix_shell(tc: TidbCluster) -> None:
    assert [""] * 4 == [shellcheck(script) for script in hooks_of(tc).values()]


def test_without_the_annotation_there_is_no_hook() -> None:
    tc = cluster(ticdc=CAPTURES)
    assert [{}, {}, {}] == [hooks.pd_hooks(tc), hooks.tikv_hooks(tc), hooks.ticdc_hooks(tc)]


def test_tikv_evicts_the_leaders_of_its_own_store_and_marks_that(tikv_pod: Pod) -> None:
    done = run(tikv_pod, "tikv preStop", (0, ALL), (0, "[]"), (0, ""), (0, left(7)), (7, ""), (0, left(0)))
    assert (0, "preStop: store 2 leads no region\n") == (done.code, done.output)
    assert "2\n" == (tikv_pod.root / MARK).read_text()
    schedulers, store = "pd/api/v1/schedulers", "GET pd/api/v1/store/2"
    expected = ["GET pd/api/v1/stores", f"GET {schedulers}", f"POST {schedulers}", store, store, store]
    assert expected == requests(tikv_pod)
    assert '--data {"name":"evict-leader-scheduler","store_id":2} http://demo-pd:2379/' in tikv_pod.calls("curl")[2]


@pytest.mark.parametrize(
    "listed", [[(0, EVICTING), (0, '{"store-id-ranges": {"2": [{}]}}')], [(0, EVICTING[:-2] + '-2"]')]]
)
def test_an_eviction_of_another_client_gets_no_mark(tikv_pod: Pod, listed: list[tuple[int, str]]) -> None:
    done = run(tikv_pod, "tikv preStop", (0, ALL), *listed, (0, left(0)))
    assert (0, False) == (done.code, (tikv_pod.root / MARK).exists())
    assert [] == [each for each in requests(tikv_pod) if not each.startswith("GET")]


@pytest.mark.parametrize(
    ("answers", "code", "why"),
    [
        ([(7, "")], 1, "PD does not list its stores"),
        ([(0, stores("demo-tikv-1", "demo-tikv-2"))], 0, "PD has no store demo-tikv-0.demo-tikv-peer.ns.svc:20160"),
        ([(0, stores("demo-tikv-0", "demo-tikv-1", demo_tikv_1="Down"))], 0, "no other store is Up"),
        ([(0, ALL), (7, "")], 1, "PD does not list its schedulers"),
        ([(0, ALL), (0, "[]"), (22, "")], 1, "PD does not evict the leaders of store 2"),
    ],
)
def test_the_end_of_the_hook_says_why_leaders_stay(
    tikv_pod: Pod, answers: list[tuple[int, str]], code: int, why: str
) -> None:
    done = run(tikv_pod, "tikv preStop", *answers)
    assert code == done.code
    assert why in done.output


def test_the_hook_ends_when_two_thirds_of_the_grace_period_are_over(tikv_pod: Pod) -> None:
    tikv_pod.answers("curl", (0, ALL), (0, "[]"), (0, ""), (0, left(7)))
    done, seconds = run_slowly(tikv_pod, hooks_of(cluster(ticdc=CAPTURES))["tikv preStop"])
    assert (1, "preStop: store 2 still leads 7 regions after 20 s\n") == (done.code, done.output)
    assert 21 == seconds


@pytest.mark.parametrize(
    ("component", "answer"), [("pd", '{"name": "demo-pd-0"}'), ("ticdc", '[{"id": "a"}, {"id": "b"}]')]
)
def test_a_hook_asks_nothing_after_its_time(component: str, answer: str, tmp_path: Path) -> None:
    grace: Json = {"terminationGracePeriodSeconds": 32}
    tc = cluster(pd=grace, ticdc=CAPTURES | grace)
    pod = pod_of(component, tmp_path, SHELLS[0])
    pod.answers("curl", (0, answer))
    done, seconds = run_slowly(pod, hooks_of(tc)[f"{component} preStop"])
    # 21 seconds, the end of a request, and a pause
    assert (1, 24) == (done.code, seconds)


def run_slowly(pod: Pod, script: str) -> tuple[Run, int]:
    """Run a hook whose requests take 3 s each, as long as curl waits; also the seconds that it takes."""
    clock, begins = pod.root / "uptime", 100
    clock.write_text(f"{begins}.00 0.00")
    for program, seconds in (("curl", "3"), ("sleep", "$1")):
        passes = f'read -r now _ <"{clock}"\necho "$((${{now%.*}} + {seconds})).00 0.00" >"{clock}"\n'
        text = (pod.root / "bin" / program).read_text().removeprefix("#!/bin/sh\n")
        pod.replaces(program, f"#!/bin/sh\n{passes}{text}")
    (pod.root / "var/lib/tikv").mkdir(exist_ok=True)
    done = pod.run(script.replace("/proc/uptime", str(clock)))
    return done, int(clock.read_text().partition(".")[0]) - begins


def test_without_curl_tikv_stops_as_before(tikv_pod: Pod) -> None:
    (tikv_pod.root / "bin/curl").unlink()
    script = hooks_of(cluster(ticdc=CAPTURES))["tikv preStop"].replace(
        "command -v curl", "command -v curl-of-this-image"
    )
    done = tikv_pod.run(script)
    assert (1, "preStop: this image has no curl, so region leaders stay\n") == (done.code, done.output)


def test_a_start_ends_the_eviction_of_the_mark_once_tikv_serves(tikv_pod: Pod) -> None:
    tikv_pod.write(MARK, "2\n")
    done = run(tikv_pod, "tikv postStart", (7, ""), (0, "{}"), (0, ""))
    assert (0, False) == (done.code, (tikv_pod.root / MARK).exists())
    removal = "DELETE pd/api/v1/schedulers/evict-leader-scheduler-2"
    assert ["GET status", "GET status", removal] == requests(tikv_pod)


def test_a_pd_that_lists_no_scheduler_yet_has_not_ended_the_eviction(tikv_pod: Pod) -> None:
    tikv_pod.write(MARK, "2\n")
    refused: list[tuple[int, str]] = [(0, "{}"), (22, "")]
    gone = (0, '["balance-leader-scheduler"]')
    still = [(0, EVICTING), (0, '{"store-id-ranges": {"2": [{}]}}')]
    done = run(tikv_pod, "tikv postStart", *refused, (0, "[]"), *refused, *still, *refused, gone)
    assert (0, False) == (done.code, (tikv_pod.root / MARK).exists())
    assert 3 == len([each for each in requests(tikv_pod) if each.startswith("DELETE")])


def test_a_start_without_a_mark_asks_nothing(tikv_pod: Pod) -> None:
    assert (0, []) == (run(tikv_pod, "tikv postStart", (7, "")).code, tikv_pod.calls("curl"))


def leader(name: str) -> tuple[int, str]:
    return 0, json.dumps({"name": name, "member_id": 1}, indent=2)


def health(*healthy: bool) -> tuple[int, str]:
    return 0, json.dumps([{"name": f"demo-pd-{at}", "health": each} for at, each in enumerate(healthy)], indent=2)


@pytest.mark.parametrize(
    ("answers", "written", "why"),
    [
        ([leader("demo-pd-1")], [], "another member leads PD"),
        ([leader("demo-pd-0"), health(True, True), (0, ""), (7, ""), leader("demo-pd-1")], ["POST"], "another member"),
        ([leader("demo-pd-0"), health(True, False)], [], "no other member of PD is healthy"),
    ],
)
def test_a_leader_of_pd_resigns(pd_pod: Pod, answers: list[tuple[int, str]], written: list[str], why: str) -> None:
    done = run(pd_pod, "pd preStop", *answers)
    assert (0, written) == (done.code, [each.split()[0] for each in requests(pd_pod) if not each.startswith("GET")])
    assert why in done.output


def test_pd_resigns_by_busyboxs_wget_where_there_is_no_curl(pd_pod: Pod) -> None:
    pd_pod.answers("wget", leader("demo-pd-0"), health(True, True), (0, ""), leader("demo-pd-1"))
    script = hooks_of(cluster(ticdc=CAPTURES))["pd preStop"].replace("command -v curl", "command -v curl-of-this-image")
    assert 0 == pd_pod.run(script).code
    own = "http://demo-pd-0.demo-pd-peer.ns.svc:2379/pd/api/v1/leader"
    assert f"-qO- -T 3 --post-data= {own}/resign" == pd_pod.calls("wget")[2]


def test_a_capture_resigns_and_gives_up_its_tables(ticdc_pod: Pod) -> None:
    owner, other = (
        (0, json.dumps({"version": "v8.5.2", "id": "a-1", "is_owner": each}, indent=2)) for each in (True, False)
    )
    captures = (0, json.dumps([{"id": "a-1", "is_owner": True}, {"id": "b-2", "is_owner": False}], indent=2))
    moving, moved = ((0, json.dumps({"current_table_count": each})) for each in (12, 0))
    done = run(ticdc_pod, "ticdc preStop", owner, captures, (0, ""), other, captures, moving, other, captures, moved)
    assert (0, "preStop: the capture has no tables\n") == (done.code, done.output)
    assert '--data {"capture_id":"a-1"}' in ticdc_pod.calls("curl")[-1]


def test_a_lone_capture_keeps_its_tables(ticdc_pod: Pod) -> None:
    status = (0, json.dumps({"id": "a-1", "is_owner": True}))
    done = run(ticdc_pod, "ticdc preStop", status, (0, json.dumps([{"id": "a-1"}])))
    assert (0, "preStop: there is no other capture\n") == (done.code, done.output)


@pytest.mark.parametrize("component", ["pd", "tikv", "ticdc"])
def test_with_tls_each_request_has_the_pods_certificate(component: str, tmp_path: Path) -> None:
    pod = pod_of(component, tmp_path, "dash")
    run(
        pod,
        f"{component} preStop",
        (0, '[{"id":"a","name":"b"}]'),
        tc=cluster(ticdc=CAPTURES, tlsCluster={"enabled": True}),
    )
    files = f"/var/lib/{component}-tls"
    options = f"--cacert {files}/ca.crt --cert {files}/tls.crt --key {files}/tls.key https://demo-"
    assert pod.calls("curl")
    assert all(options in call.replace(str(pod.root), "") for call in pod.calls("curl"))


def test_discovery_verifies_pds_address_once(tikv_pod: Pod) -> None:
    tikv_pod.answers("wget", (0, "demo-pd.elsewhere:2379"))
    run(
        tikv_pod, "tikv preStop", (0, ALL), (0, "[]"), (0, ""), (0, left(0)), tc=cluster(ticdc=CAPTURES, acrossK8s=True)
    )
    assert 1 == len(tikv_pod.calls("wget"))
    assert "http://demo-pd.elsewhere:2379/pd/api/v1/stores" in tikv_pod.calls("curl")[0]


def test_nothing_in_a_value_of_the_spec_runs(tikv_pod: Pod) -> None:
    spec: Json = {"pdAddresses": ["http://$(touch /tmp/x)`touch y`;touch z'\":2379"]}
    tc = v2("PreferPDAddressesOverDiscovery", ticdc=CAPTURES, **spec)
    done = run(tikv_pod, "tikv preStop", (0, ALL), (0, "[]"), (0, ""), (0, left(0)), tc=tc)
    assert 0 == done.code
    assert "$(touch" in tikv_pod.calls("curl")[0]
    assert [] == [path for path in tikv_pod.root.rglob("*") if path.name in "xyz"]
