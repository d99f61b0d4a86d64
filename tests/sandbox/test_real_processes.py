"""Containers as real processes, with programs that can be had: a shell, and etcd in the place of PD."""

import base64
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from kube.errors import NotFound
from kube.objects import Json
from kube.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_CLUSTERS,
)
from member import discovery
from ports.clock import SystemClock
from ports.transport import Request, TlsError, TransportError
from sandbox.dataplane.network import Origin
from sandbox.dataplane.tls import Certificate
from sandbox.processes.agent_client import GATEWAY
from sandbox.world import World
from tests.certificates import Authority, Pair
from tests.e2e.waiting import eventually
from tests.sandbox.real_pods import (
    AS_ROOT_AND_WITHOUT,
    LIVES,
    NAMESPACE,
    PYTHON,
    SERVES,
    answered,
    binaries,
    built,
    container,
    holds,
    output,
    pod,
    processes,
    program,
    read,
    run,
    running,
    said,
    world,
)

pytestmark = pytest.mark.slow

__all__ = ["binaries", "world"]


@AS_ROOT_AND_WITHOUT
def test_a_pod_has_files_names_and_an_address_of_its_own_as_root_and_without(binaries: Path, as_root: bool) -> None:
    with running(binaries, as_root=as_root) as world:
        world.client().create(
            CONFIG_MAPS,
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "text"}, "data": {"greeting": "hello"}},
            NAMESPACE,
        )
        # a link of the machine leads from /var/run to another directory, and /dev has mounts below it
        where = ("/etc/told", "/var/run/info") if as_root else ("/dev/told/inner", "/var/run/info")
        sees = f"cat {where[0]}/greeting; echo; echo $MINE; hostname; cat {where[1]}/name; echo; getent hosts a.a"
        volumes: list[Json] = [
            {"name": "told", "configMap": {"name": "text"}},
            {"name": "info", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "data", "emptyDir": {}},
        ]
        mounts = [{"name": name, "mountPath": path} for name, path in zip(("told", "info"), where, strict=True)]
        mounts += [{"name": "data", "mountPath": "/data"}]
        probe = {"httpGet": {"port": 8000, "path": "/page"}}
        more = {"env": [{"name": "MINE", "value": "yes"}], "volumeMounts": mounts, "readinessProbe": probe}
        uid = run(world, pod("a", f"cd /data; {sees}; echo it is I >page; {SERVES}", container=more, volumes=volumes))
        holds(lambda: bool(container(world, "a").get("ready")), lambda: output(world, uid))
        address = read(world, "a")["status"]["podIP"]
        text = said(world, uid, address)
        assert ["hello", "yes", "a", "a"] == text.splitlines()[:4]
        assert text.splitlines()[4].split()[0] == address
        assert answered(world, "http://a.a.default:8000/page").body == b"it is I\n"
        assert not any(Path(path).exists() for path in (*where, os.path.realpath("/var/run/info")))


def test_a_tag_selects_the_version_in_the_layout_of_tiup(tmp_path: Path) -> None:
    for version in ("v8.5.2", "v8.5.10", "v8.5.9"):
        (tmp_path / "pd" / version).mkdir(parents=True)
        program(tmp_path / "pd" / version, "pd-server", f"echo this is {version}; {LIVES}")
    with running(tmp_path, as_root=False) as world:
        for name, tag in (("same", "v8.5.2"), ("newest", "v8.5.3")):
            more = {"image": f"pingcap/pd:{tag}", "command": ["/bin/sh", "-c", "exec /pd-server"]}
            run(world, pod(name, "", container=more))
        uids = [read(world, name)["metadata"]["uid"] for name in ("same", "newest")]
        assert ["this is v8.5.2", "this is v8.5.10"] == [said(world, uid, "this is") for uid in uids]


def test_a_real_pod_reaches_services_and_simulated_pods_by_name(world: World) -> None:
    run(world, pod("web", f"cd /tmp; echo served >page; {SERVES}"))
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": spec}
    world.client().create(SERVICES, service, NAMESPACE)
    simulated = pod("simulated", "", container={"image": "grafana", "command": ["grafana"]})
    run(world, simulated)
    answered(world, "http://web.web.default:8000/page")
    fetch = f"{PYTHON} -c 'import urllib.request as r; print(r.urlopen(\"'$url'\").read())'"
    asks = "; ".join(f"url={url}; {fetch}" for url in ("http://front/page", "http://simulated.simulated:8000/-/ready"))
    uid = run(world, pod("asks", f"sleep 0.5; {asks}; {LIVES}"))
    assert ["b'served\\n'", "b'Ready.\\n'"] == said(world, uid, "Ready").splitlines()[-2:]


def test_discovery_is_a_process_that_answers_the_pod_of_the_question_and_no_other(tmp_path: Path) -> None:
    program(tmp_path, "pd-server", 'eval "$1"')
    with running(tmp_path, as_root=os.geteuid() == 0) as world:
        client = world.client()
        spec: Json = {"version": "v8.5.0", "pd": {"replicas": 1, "requests": {"storage": "1Gi"}}}
        tree: Json = {"apiVersion": TIDB_CLUSTERS.api_version, "kind": TIDB_CLUSTERS.kind, "spec": spec}
        tree["metadata"] = {"name": "demo", "namespace": NAMESPACE}
        tc = decode(client.create(TIDB_CLUSTERS, tree, NAMESPACE).decode(), TidbCluster)
        for resource, part in (
            (SERVICE_ACCOUNTS, discovery.service_account(tc)),
            (ROLES, discovery.role_of(tc)),
            (ROLE_BINDINGS, discovery.role_binding(tc)),
            (DEPLOYMENTS, discovery.deployment(tc, "example.org/operator:1")),
            (SERVICES, discovery.service(tc)),
        ):
            client.create(resource, part, NAMESPACE)
        # nothing listens behind it: if it accepted connections, Discovery would see a PD that is alive
        silent = {"selector": {"app": "asks"}, "ports": [{"port": 2379}]}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "demo-pd"}, "spec": silent}
        client.create(SERVICES, service, NAMESPACE)
        question = base64.b64encode(b"demo-pd-0.demo-pd-peer.default.svc:2380").decode()
        asks = (
            "import time, urllib.error, urllib.request\n"
            "while True:\n"
            "    try:\n"
            f'        print(urllib.request.urlopen("http://demo-discovery:10261/new/{question}").read().decode())\n'
            "    except urllib.error.HTTPError as refusal:\n"
            "        print(refusal.read().decode())\n"
            "    except OSError:\n"
            "        pass\n"
            "    time.sleep(0.5)\n"
        )
        command = ["/pd-server", f"exec {PYTHON} -uc '{asks}'"]
        forger = run(world, pod("forger", "", container={"command": command}))
        said(world, forger, "pod demo-pd-0 does not exist")
        said(world, forger, "Connection refused")
        labels = {"app": "asks"}
        template = {"metadata": {"labels": labels}, "spec": pod("", "", container={"command": command})["spec"]}
        asking = {"serviceName": "asks", "selector": {"matchLabels": labels}, "template": template}
        meta = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "demo-pd"}}
        client.create(STATEFUL_SETS, meta | {"spec": asking}, NAMESPACE)
        address = read(world, "forger")["status"]["podIP"]
        said(world, forger, f"came from {address}, not from ")
        asker = read(world, "demo-pd-0")["metadata"]["uid"]
        said(world, asker, "--initial-cluster=demo-pd-0=http://demo-pd-0.demo-pd-peer.default.svc:2380")
        assert "--initial-cluster" not in output(world, forger)
        assert processes("-m discovery")


def test_a_pod_that_resets_its_connections_leaves_the_network_serving(
    world: World, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": spec}
    world.client().create(SERVICES, service, NAMESPACE)
    run(world, pod("web", f"cd /tmp; echo served >page; {SERVES}"))
    answered(world, "http://web.web.default:8000/page")
    program = (
        "import socket, struct, urllib.request\n"
        f'for place, start in (("{GATEWAY}", 53), b"\\0\\x20abc"), (("front", 80), b"GET /pa"):\n'
        "    client = socket.create_connection(place)\n"
        "    client.sendall(start)\n"
        '    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))\n'
        "    client.close()\n"
        'print(urllib.request.urlopen("http://front/page").read())'
    )
    uid = run(world, pod("breaks", f"sleep 0.5; {PYTHON} -c '{program}'; {LIVES}"))
    assert "b'served\\n'" == said(world, uid, "served")
    assert "Traceback" not in capfd.readouterr().err


def test_a_deleted_pod_gets_sigterm_and_time_to_end(world: World) -> None:
    text = (
        "trap 'echo parting; sleep 0.3; echo gone >/data/end; exit 0' TERM; echo begun; while true; do sleep 0.1; done"
    )
    claim = {"name": "data", "emptyDir": {}}
    more = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    uid = run(world, pod("leaves", text, container=more, volumes=[claim]))
    said(world, uid, "begun")
    printed = world.kubelet.output(uid, "tool", False)
    world.client().delete(PODS, "leaves", NAMESPACE)
    with suppress(NotFound):
        holds(lambda: not read(world, "leaves"), lambda: "still there")
    assert printed is not None
    assert "parting" in [line.text for line in printed.after(0)]


def test_a_process_that_ignores_sigterm_is_killed_after_its_grace(world: World) -> None:
    uid = run(
        world, pod("stays", f"trap '' TERM; echo begun; {LIVES} # unforgettable", terminationGracePeriodSeconds=5)
    )
    said(world, uid, "begun")
    assert processes("unforgettable")
    world.client().delete(PODS, "stays", NAMESPACE)
    holds(lambda: not processes("unforgettable"), lambda: "it still runs")


def test_a_lost_node_ends_its_processes_and_silences_their_addresses(world: World) -> None:
    uid = run(world, pod("lost", f"echo here; cd /tmp; echo x >page; {SERVES} # on-lost-node"))
    said(world, uid, "here")
    answered(world, "http://lost.lost.default:8000/page")
    address, node = (read(world, "lost")[part][name] for part, name in (("status", "podIP"), ("spec", "nodeName")))
    elsewhere = next(each for each in ("node-1", "node-2", "node-3") if each != node)
    heal = world.faults.node_gone(node)
    holds(lambda: not processes("on-lost-node"), lambda: "it still runs")
    connect = f'import socket; socket.create_connection(("{address}", 8000), 1)'
    asker = run(world, pod("asker", f"{PYTHON} -c '{connect}'; {LIVES}", nodeName=elsewhere))
    text = said(world, asker, "Error")
    assert "refused" not in text
    assert "timed out" in text or "No route to host" in text
    heal()


def test_a_changed_secret_shows_in_the_file(world: World) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "word"}, "stringData": {"word": "old"}}
    world.client().create(SECRETS, secret, NAMESPACE)
    volume = {"name": "word", "secret": {"secretName": "word"}}
    more = {"volumeMounts": [{"name": "word", "mountPath": "/etc/word"}]}
    script = "while true; do cat /etc/word/word; echo; sleep 0.2; done"
    uid = run(world, pod("renews", script, container=more, volumes=[volume]))
    said(world, uid, "old")
    world.client().patch(SECRETS, "word", NAMESPACE, {"stringData": {"word": "new"}})
    said(world, uid, "new")


def test_three_etcd_members_find_each_other_and_keep_their_data_over_a_stop_of_the_sandbox(tmp_path: Path) -> None:
    binaries, keep = tmp_path / "binaries", tmp_path / "keep"
    binaries.mkdir()
    (binaries / "pd-server").symlink_to(built("etcd"))
    start = """
peers() { for each in 0 1 2; do printf '%s' "pd-$each=http://pd-$each.peer:2380,"; done; }
until getent hosts "$HOSTNAME.peer" >/dev/null; do sleep 0.1; done
initial=$(peers)
exec /pd-server --name "$HOSTNAME" --data-dir /var/lib/pd --log-level error \
    --listen-peer-urls http://0.0.0.0:2380 --initial-advertise-peer-urls "http://$HOSTNAME.peer:2380" \
    --listen-client-urls http://0.0.0.0:2379 --advertise-client-urls "http://$HOSTNAME.peer:2379" \
    --initial-cluster "${initial%,}"
"""
    with running(binaries, as_root=os.geteuid() == 0, keep=keep) as world:
        _create_etcd(world, start)
        holds(lambda: _ready(world) == 3, lambda: _ready(world))
        _etcd(world, "put", {"key": "aw==", "value": "dg=="})
        before = container(world, "pd-1").get("restartCount", 0)
        world.data_plane.crash(NAMESPACE, "pd-1")
        holds(lambda: container(world, "pd-1")["restartCount"] == before + 1, lambda: container(world, "pd-1"))
        holds(lambda: _ready(world) == 3, lambda: _ready(world))
        # a deleted pod gets another address, which the others find by its name
        world.client().delete(PODS, "pd-2", NAMESPACE)
        holds(lambda: _ready(world) < 3, lambda: _ready(world))
        holds(lambda: _ready(world) == 3, lambda: _ready(world))
        assert _etcd(world, "range", {"key": "aw=="}, "pd-2")["kvs"][0]["value"] == "dg=="
        before_stop = [read(world, f"pd-{ordinal}") for ordinal in range(3)]
    with running(binaries, as_root=os.geteuid() == 0, keep=keep) as world:
        holds(lambda: _restarted(world, before_stop), lambda: container(world, "pd-0"))
        holds(lambda: _ready(world) == 3, lambda: _ready(world))
        assert _etcd(world, "range", {"key": "aw=="}, "pd-1")["kvs"][0]["value"] == "dg=="


def test_tls_of_a_real_server_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "pd-server").symlink_to(built("etcd"))
    pair, stranger = (_pair(Authority()) for _ in range(2))
    options = "--trusted-ca-file /tls/ca.crt --cert-file /tls/tls.crt --key-file /tls/tls.key --client-cert-auth"
    urls = "--listen-client-urls https://0.0.0.0:8000 --advertise-client-urls https://secure.secure.default:8000"
    curl = "curl https://127.0.0.1:8000/health --cacert /tls/ca.crt --cert /tls/tls.crt --key /tls/tls.key"
    more: Json = {"image": "pingcap/pd:v8.5.0", "command": ["/bin/sh", "-c", f"exec /pd-server {options} {urls}"]}
    more |= {"volumeMounts": [{"name": "tls", "mountPath": "/tls"}], "readinessProbe": {"exec": {"command": [curl]}}}
    with running(tmp_path, as_root=False) as world:
        world.client().create(SECRETS, pair.secret("tls"), NAMESPACE)
        run(world, pod("secure", "", container=more, volumes=[{"name": "tls", "secret": {"secretName": "tls"}}]))
        holds(lambda: bool(container(world, "secure").get("ready")), lambda: container(world, "secure"))
        request = Request("GET", "https://secure.secure.default:8000/health", timeout=5.0)

        def ask(certificate: Certificate) -> int:
            return world.data_plane_transport(Origin(certificate=certificate)).request(request).status

        assert 200 == ask(Certificate.of(pair))
        with pytest.raises(TlsError, match=r"unable to get local issuer certificate|self.signed"):
            ask(Certificate.of(stranger))
        with pytest.raises(TransportError):
            ask(replace(Certificate.of(pair), cert="", key=""))


def _pair(authority: Authority) -> Pair:
    # real servers know the real time
    now, day = SystemClock().wall(), timedelta(days=1)
    return authority.pair("secure.secure.default", "127.0.0.1", begins=now - day, ends=now + day)


def _create_etcd(world: World, start: str) -> None:
    client = world.client()
    text = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "pd"}, "data": {"start": start}}
    client.create(CONFIG_MAPS, text, NAMESPACE)
    labels = {"app": "pd"}
    spec: Json = {"clusterIP": "None", "selector": labels, "publishNotReadyAddresses": True}
    spec["ports"] = [{"name": "client", "port": 2379}, {"name": "peer", "port": 2380}]
    client.create(
        SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "peer"}, "spec": spec}, NAMESPACE
    )
    mounts = [{"name": "pd", "mountPath": "/var/lib/pd"}]
    mounts += [{"name": "text", "mountPath": "/usr/local/bin/start.sh", "subPath": "start"}]
    member = {
        "name": "pd",
        "image": "pingcap/pd:v8.5.0",
        "command": ["/bin/sh", "/usr/local/bin/start.sh"],
        "ports": [{"containerPort": 2379}, {"containerPort": 2380}],
        "volumeMounts": mounts,
        "readinessProbe": {"httpGet": {"port": 2379, "path": "/health"}},
    }
    pods = {"containers": [member], "volumes": [{"name": "text", "configMap": {"name": "pd"}}]}
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "pd"}, "spec": {**claim_spec, "storageClassName": "standard"}}
    all_of_it: Json = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "pd"},
        "spec": {
            "replicas": 3,
            "serviceName": "peer",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pods},
            "volumeClaimTemplates": [claim],
        },
    }
    client.create(STATEFUL_SETS, all_of_it, NAMESPACE)


def _restarted(world: World, pods: Sequence[Json]) -> bool:
    """True if each of these pods runs at its address with one restart more, as after a reboot of its node."""

    def sight(pod: Json) -> tuple[str, str, int]:
        status = pod["status"]
        return pod["metadata"]["uid"], status["podIP"], status["containerStatuses"][0]["restartCount"]

    now = [sight(read(world, pod["metadata"]["name"])) for pod in pods]
    return now == [(uid, address, restarts + 1) for uid, address, restarts in map(sight, pods)]


def _ready(world: World) -> int:
    found = world.client().get(STATEFUL_SETS, "pd", NAMESPACE).decode()
    count: int = found.get("status", {}).get("readyReplicas", 0)
    return count


def _etcd(world: World, what: str, body: Json, member: str = "pd-0") -> Json:
    def asked() -> Json | None:
        url = f"http://{member}.peer.{NAMESPACE}:2379/v3/kv/{what}"
        request = Request("POST", url, {"Host": "pd.example"}, json.dumps(body).encode(), timeout=5.0)
        try:
            response = world.data_plane_transport().request(request)
        except TransportError:
            return None
        found: Json = json.loads(response.body)
        return found if response.status == 200 else None

    found = eventually(asked)
    assert found is not None
    return found
