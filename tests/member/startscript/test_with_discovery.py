"""The scripts and the discovery service speak with each other, over HTTP, under dash and bash."""

import shutil
from collections.abc import Iterator

import pytest

from dataplane.addresses import DISCOVERY_PORT
from member.startscript import pd_script, tidb_script
from ports.http_server import Server, answer_with
from tests.discovery.worlds import World, cluster, membership
from tests.member.startscript.pods import Pod

HOST = "demo-pd-0.demo-pd-peer.default.svc"


@pytest.fixture
def world() -> World:
    """The cluster that discovery serves."""
    return World(cluster(pd={"replicas": 1}))


@pytest.fixture
def port(world: World) -> Iterator[int]:
    """The port of Discovery's server."""
    server = Server("discovery", ("127.0.0.1", 0), answer_with(world.app().handle))
    with server.serving():
        yield server.port


def dial(pod: Pod, host: str, port: int) -> None:
    """Let the pod's wget reach Discovery by its name in the cluster."""
    wget = shutil.which("wget")
    if wget is None:
        pytest.skip("there is no wget here")
    # the last argument is the URL
    script = f"""#!/bin/sh
for url; do :; done
case $url in http://{host}:{DISCOVERY_PORT}/*) ;; *) exit 4 ;; esac
exec {wget} -qO- -T 3 "http://127.0.0.1:{port}/${{url#http://*/}}"
"""
    pod.replaces("wget", script)


@pytest.mark.rule("10.3")
def test_a_new_cluster_begins(pd_pod: Pod, world: World, port: int) -> None:
    dial(pd_pod, "demo-discovery.default.svc", port)
    pd_pod.env["NAMESPACE"] = "default"
    run = pd_pod.run(pd_script(world.get("default", "demo")))
    assert run.argv is not None
    assert f"--initial-cluster=demo-pd-0=http://{HOST}:2380" == run.argv[-1]


@pytest.mark.rule("10.3")
def test_a_member_joins(pd_pod: Pod, world: World, port: int) -> None:
    dial(pd_pod, "demo-discovery.default.svc", port)
    pd_pod.env["NAMESPACE"] = "default"
    world.answers["http://demo-pd.default:2379"] = membership(1, 2)
    run = pd_pod.run(pd_script(cluster()))
    assert run.argv is not None
    assert (
        "--join=http://" + HOST.replace("-0", "-1", 1) + ":2379,http://" + HOST.replace("-0", "-2", 1) + ":2379"
        == (run.argv[-1])
    )


@pytest.mark.rule("F40")
def test_a_refused_pod_never_starts_by_itself(pd_pod: Pod, world: World, port: int) -> None:
    dial(pd_pod, "demo-discovery.default.svc", port)
    pd_pod.env["NAMESPACE"] = "default"
    assert not isinstance(world.tc, Exception)
    world.tc.status.cluster_id = "7"
    # the third pause ends the script, which would ask forever
    pd_pod.replaces(
        "sleep", '#!/bin/sh\necho >>"$POD_ROOT/slept"\n[ "$(wc -l <"$POD_ROOT/slept")" -lt 3 ] || kill "$PPID"\n'
    )
    run = pd_pod.run(pd_script(cluster(pd={"replicas": 1})))
    assert run.argv is None
    assert "waiting for Discovery" in run.output


@pytest.mark.rule("10.5")
def test_tidb_learns_the_peers(tidb_pod: Pod, world: World, port: int) -> None:
    dial(tidb_pod, "demo-discovery.default", port)
    tidb_pod.env["NAMESPACE"] = "default"
    peer = {"name": "p", "id": "1", "clientURL": "http://pd-0.far:2379", "health": True}
    world.tc = cluster(acrossK8s=True, tidb={"replicas": 1}, status={"pd": {"peerMembers": {"p": peer}}})
    run = tidb_pod.run(tidb_script(world.tc))
    assert run.argv is not None
    assert "--path=demo-pd:2379,pd-0.far:2379" in run.argv
