"""`kubectl port-forward` and `kubectl tidb sql` in front of the sandbox, with MariaDB in TiDB's place."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import yaml

from cli.tidb import main as kubectl_tidb
from cli.tidb.sql.tunnel import HOST, Tunnel, tunnel
from kube.objects import Json
from kube.resources import CONFIG_MAPS, TIDB_CLUSTERS
from sandbox.world import World
from tests.e2e.waiting import eventually
from tests.operator_world import sample
from tests.sandbox.real_pods import (
    NAMESPACE,
    SERVES,
    answered,
    binaries,
    built,
    container,
    holds,
    output,
    pod,
    program,
    run,
    running,
    world,
)
from tests.sql_server import program as mariadbd
from tests.sql_server import tables_with

pytestmark = pytest.mark.slow

__all__ = ["binaries", "world"]


@pytest.fixture(autouse=True)
def _kubectl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(built("kubectl").parent), prepend=":")


@contextmanager
def forwarded(world: World, place: Path, name: str, port: int) -> Iterator[Tunnel]:
    """A local port that `kubectl port-forward` leads to a port of a pod."""
    kubeconfig = world.write_kubeconfig(place)
    with tunnel([f"--kubeconfig={kubeconfig}", f"--namespace={NAMESPACE}", f"pod/{name}"], port, place) as way:
        yield way


def get(port: int, path: str = "/") -> bytes:
    return requests.get(f"http://{HOST}:{port}{path}", timeout=10).content


def test_kubectl_forwards_several_connections_at_once_to_a_real_server(world: World, tmp_path: Path) -> None:
    large = "dd if=/dev/zero of=large bs=1M count=3 2>/dev/null"
    run(world, pod("web", f"cd /tmp; echo it is I >page; {large}; {SERVES}"))
    answered(world, "http://web.web.default:8000/page")
    with forwarded(world, tmp_path, "web", 8000) as way, socket.create_connection((HOST, way.port), 10) as slow:
        assert bytes(3 << 20) == get(way.port, "/large")
        assert b"it is I\n" == get(way.port, "/page")
        slow.sendall(b"GET /page HTTP/1.0\r\n\r\n")
        slow.shutdown(socket.SHUT_WR)
        assert b"it is I\n" == b"".join(iter(lambda: slow.recv(4096), b"")).rpartition(b"\r\n")[2]
        assert "" == way.failure


def test_kubectl_forwards_to_a_simulated_server(world: World, tmp_path: Path) -> None:
    run(world, pod("simulated", "", container={"image": "grafana", "command": ["grafana"]}))
    answered(world, "http://simulated.simulated.default:8000/-/ready")
    with forwarded(world, tmp_path, "simulated", 8000) as way:
        assert b"Ready.\n" == get(way.port, "/-/ready")


def test_a_port_without_a_server_is_an_error_of_kubectl(world: World, tmp_path: Path) -> None:
    run(world, pod("web", f"cd /tmp; {SERVES}"))
    answered(world, "http://web.web.default:8000/")
    with forwarded(world, tmp_path, "web", 9) as way:
        with pytest.raises(requests.ConnectionError):
            get(way.port)
        text = "an error occurred forwarding to port 9 of pod web: connection to"
        eventually(lambda: text in way.complaints.read_text("utf-8"), told=lambda: way.complaints.read_text("utf-8"))


def test_a_pod_that_is_missing_or_waits_is_refused(world: World, tmp_path: Path) -> None:
    run(world, pod("waits", "", nodeSelector={"no": "where"}))
    kubeconfig = yaml.safe_load(world.write_kubeconfig(tmp_path).read_text("utf-8"))
    headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "portforward.k8s.io"}
    api = kubeconfig["clusters"][0]["cluster"]["server"]

    def refusal(name: str, token: str = kubeconfig["users"][0]["user"]["token"]) -> tuple[int, str]:
        url = f"{api}/api/v1/namespaces/{NAMESPACE}/pods/{name}/portforward"
        answer = requests.post(url, headers=headers | {"Authorization": f"Bearer {token}"}, timeout=10)
        return answer.status_code, answer.json()["message"]

    assert (404, 'pods "none" not found') == refusal("none")
    assert (400, "pod waits does not have a host assigned") == refusal("waits")
    assert 401 == refusal("waits", "stranger")[0]


def test_kubectl_tidb_sql_reaches_a_real_sql_server_in_tidbs_place(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("mariadb") is None:
        assert not os.environ.get("REQUIRE_EVERYTHING"), "mariadb is missing"
        pytest.skip("mariadb is missing: install mariadb-client-core")
    programs = tmp_path / "programs"
    programs.mkdir()
    serve = f"{mariadbd()} --no-defaults --datadir=/tmp/data --user=root"
    listen = "--port=4000 --bind-address=0.0.0.0 --socket=/tmp/socket --skip-name-resolve"
    program(programs, "tidb-server", f"mkdir /tmp/data; {serve} --bootstrap <$1 && exec {serve} {listen}")
    volume = {"name": "tables", "configMap": {"name": "tables"}}
    more: Json = {"image": "pingcap/tidb:v8.5.2", "command": ["/bin/sh", "-c", "exec /tidb-server /tables/sql"]}
    more |= {"ports": [{"containerPort": 4000}], "readinessProbe": {"tcpSocket": {"port": 4000}}}
    more |= {"volumeMounts": [{"name": "tables", "mountPath": "/tables"}]}
    with running(programs, as_root=os.geteuid() == 0) as world:
        text = tables_with(b"FLUSH PRIVILEGES;\nCREATE USER root@'%';\n").decode()
        tables = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tables"}, "data": {"sql": text}}
        world.client().create(CONFIG_MAPS, tables, NAMESPACE)
        world.client().create(TIDB_CLUSTERS, sample("basic"), NAMESPACE)
        tree = pod("basic-tidb-0", "", container=more, volumes=[volume])
        uid = run(world, tree | {"metadata": tree["metadata"] | {"labels": _labels("basic")}})
        holds(lambda: bool(container(world, "basic-tidb-0").get("ready")), lambda: output(world, uid))
        server = ["basic", f"--kubeconfig={world.write_kubeconfig(tmp_path)}", "--client=mariadb"]
        statement = ["-e", "SELECT VERSION() LIKE '%MariaDB%', CURRENT_USER()", "--", "--skip-column-names"]
        assert 0 == kubectl_tidb.main(["sql", *server, "--no-password", *statement])
    assert "1\troot@%" in capfd.readouterr().out.splitlines()


def _labels(cluster: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "tidb-cluster",
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/instance": cluster,
        "app.kubernetes.io/component": "tidb",
    }
