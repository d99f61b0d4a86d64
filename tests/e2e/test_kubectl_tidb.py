"""`kubectl tidb` as a process, in front of both worlds: successes and failures."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
import yaml

from cli import manifests
from cli.tidb.main import main
from kube.objects import Json
from kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PODS, ROLE_BINDINGS, TIDB_CLUSTERS
from tests.cli.tidb.sql_programs import Programs
from tests.e2e import operators, plugins
from tests.e2e.guides import KUBECTL
from tests.e2e.in_force import await_right
from tests.e2e.operators import ROOT
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, create_cluster, sample, write_kubeconfig

pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "kubectl-tidb.md"
_OF_GUIDE = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Plugin:
    """The plugin, in this process; the test reads its output."""

    def __init__(self, environ: Mapping[str, str], printed: pytest.CaptureFixture[str]) -> None:
        self.environ = dict(environ)
        self._printed = printed

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, output and complaints of a command."""
        code = main(arguments, self.environ)
        printed = self._printed.readouterr()
        return code, printed.out, printed.err


def shell(environ: Mapping[str, str], line: str) -> tuple[int, str, str]:
    """Exit code, output and complaints of a line for bash."""
    done = subprocess.run(
        ["/bin/bash", "-c", line], cwd=ROOT, env=dict(environ), capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


def of(place: Place, namespace: str = "default") -> dict[str, str]:
    """The environment of the service account `default` of a namespace; in the sandbox it may do everything."""
    return operators.clean_environment() | {"KUBECONFIG": str(place.kubeconfig(namespace, "default")), "COLUMNS": "80"}


@pytest.fixture
def admin(place: Place, namespace: str, capsys: pytest.CaptureFixture[str]) -> Iterator[Plugin]:
    """The plugin of a user with all rights, whose cluster no operator manages."""
    binding = _binding(CLUSTER_ROLE_BINDINGS.kind, f"admin-{namespace}", "cluster-admin", namespace)
    place.client.create(CLUSTER_ROLE_BINDINGS, binding)
    await_right(place, "default", TIDB_CLUSTERS, namespace)
    create_cluster(place.client, sample("basic"), namespace)
    yield Plugin(of(place, namespace), capsys)
    place.client.delete(CLUSTER_ROLE_BINDINGS, f"admin-{namespace}")


def test_documents_can_be_read_and_pages_fit(admin: Plugin, namespace: str) -> None:
    code, told, complaints = admin("status", "basic", "-n", namespace, "-o", "json")
    assert (0, "") == (code, complaints)
    report = msgspec.json.decode(told)
    assert ("basic", False, "the operator has not looked at it yet") == tuple(
        report[each] for each in ("name", "ready", "message")
    )
    assert [] == report["unread"]
    assert report == yaml.safe_load(admin("status", "basic", "-n", namespace, "-o", "yaml")[1])
    page = admin("-n", namespace, "status", "basic")[1]
    assert page.startswith(f"TidbCluster {namespace}/basic  v8.5.2  not Ready")
    assert all(len(line) <= 80 for line in page.splitlines())


def test_a_cluster_is_changed_and_only_that_one(place: Place, admin: Plugin, namespace: str) -> None:
    assert (0, f"TidbCluster {namespace}/basic paused: nothing is changed until it is resumed\n", "") == admin(
        "pause", "basic", "-n", namespace
    )
    assert (0, "") == admin("restart", "basic", "tikv", "-n", namespace)[::2]
    spec = place.client.get(TIDB_CLUSTERS, "basic", namespace).decode()["spec"]
    assert spec["paused"] is True
    assert "tidb.pingcap.com/restartedAt" in spec["tikv"]["annotations"]


def test_a_missing_object_is_reported_in_one_sentence(place: Place, admin: Plugin, namespace: str) -> None:
    told = {
        ("status", "shop"): f"no TidbCluster or DMCluster shop in namespace {namespace}; there is basic",
        ("logs", "basic"): "tidbcluster/basic has no pods; it has none at all",
        ("status", "--context", "east"): "contexts has no entry named 'east'; it has: ",
        ("status", "--kubeconfig", "/nowhere"): "/nowhere: no such file; ",
        ("restart", "basic", "tiflash"): "tidbcluster/basic has neither a component nor a pod tiflash; it has pd, ",
        ("drain", "nowhere"): "no node nowhere; there is ",
    }
    for arguments, sentence in told.items():
        code, shown, complaints = admin(*arguments, "-n", namespace)
        assert (1, "", 1) == (code, shown, len(complaints.splitlines())), complaints
        assert complaints.startswith("kubectl tidb: ")
        assert sentence in complaints


def test_an_unreachable_server_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_kubeconfig(tmp_path, "http://127.0.0.1:1")
    code, shown, complaints = Plugin({"KUBECONFIG": str(path)}, capsys)("status")
    assert (1, "") == (code, shown)
    where = f"kubectl tidb: http://127.0.0.1:1, which {path} names, cannot be reached: "
    assert complaints.startswith(where)
    assert complaints.endswith("Connection refused; is this the --context that you mean?\n")


def test_a_closed_output_pipe_ends_a_command_without_a_trace(admin: Plugin, namespace: str) -> None:
    command = f"{sys.executable} -m cli.tidb"
    code, _, complaints = shell(admin.environ, f"{command} status -n {namespace} | head -0; exit ${{PIPESTATUS[0]}}")
    assert (141, "") == (code, complaints)


def test_kubectl_finds_the_plugin_and_has_it_complete(admin: Plugin, namespace: str, tmp_path: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    environ = plugins.with_path(admin.environ, plugins.install(tmp_path / "bin"), KUBECTL.parent)
    code, shown, complaints = shell(environ, f"kubectl tidb status -n {namespace}; kubectl tidb pause")
    assert (2, "basic") == (code, shown.splitlines()[1].split()[0])
    assert "the following arguments are required: CLUSTER" in complaints
    asked = shell(environ, f"kubectl __complete tidb status -n {namespace} ba")[1]
    assert "basic\n:4\n" == asked


def test_what_kubectl_says_about_a_port_is_passed_on(
    place: Place, admin: Plugin, namespace: str, tmp_path: Path
) -> None:
    """Neither world has containers to which a port could lead."""
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    programs = Programs(plugins.install(tmp_path / "bin"))
    programs.install("mysql")
    parts = {"name": "tidb-cluster", "managed-by": "tidb-operator", "instance": "basic", "component": "tidb"}
    labels = {f"app.kubernetes.io/{name}": value for name, value in parts.items()}
    pod = {"metadata": {"name": "basic-tidb-0", "labels": labels}}
    # no scheduler takes it, so no kubelet changes its status
    spec = {"schedulerName": "none", "containers": [{"name": "tidb", "image": "pingcap/tidb:v8.5.2"}]}
    place.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod, "spec": spec}, namespace)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    place.client.patch(PODS, "basic-tidb-0", namespace, {"status": ready}, subresource="status")
    environ = plugins.with_path(admin.environ, programs.place, KUBECTL.parent)
    code, _, complaints = shell(environ, f"kubectl tidb sql basic -n {namespace} --no-password")
    assert (1, 1) == (code, len(complaints.splitlines()))
    assert complaints.startswith("kubectl tidb: kubectl cannot forward a port: ")
    assert any(each in complaints for each in ("is not implemented", "does not have a host assigned"))


# rights, which only the real control plane checks


@pytest.fixture
def roles(real: Place) -> Iterator[None]:
    """The roles of the guide."""
    documents = [document for block in _OF_GUIDE.findall(GUIDE.read_text()) for document in yaml.safe_load_all(block)]
    manifests.apply(real.client, [manifests.Manifest(GUIDE.name, each) for each in documents])
    yield
    for each in documents:
        real.client.delete(CLUSTER_ROLES, each["metadata"]["name"])


@pytest.mark.controlplane
@pytest.mark.rule("8")
def test_each_command_needs_the_rights_that_the_guide_lists(
    real: Place, roles: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with real.namespace() as namespace:
        create_cluster(real.client, sample("basic"), namespace)
        plugin = Plugin(of(real, namespace), capsys)
        code, shown, complaints = plugin("status", "basic", "-n", namespace)
        assert (1, "") == (code, shown)
        assert 'cannot get resource "tidbclusters"' in complaints

        real.client.create(
            ROLE_BINDINGS, _binding("RoleBinding", "viewer", "kubectl-tidb-viewer", namespace), namespace
        )
        await_right(real, "default", TIDB_CLUSTERS, namespace)
        assert (0, "") == plugin("status", "basic", "-n", namespace)[::2]
        assert [] == msgspec.json.decode(plugin("status", "basic", "-n", namespace, "-o", "json")[1])["unread"]
        code, shown, complaints = plugin("pause", "basic", "-n", namespace)
        assert (1, "") == (code, shown)
        assert 'cannot patch resource "tidbclusters"' in complaints

        name = f"user-{namespace}"
        real.client.create(CLUSTER_ROLE_BINDINGS, _binding("ClusterRoleBinding", name, "kubectl-tidb-user", namespace))
        try:
            eventually(lambda: 0 == plugin("pause", "basic", "-n", namespace)[0])
            for arguments in (("pause", "basic"), ("restart", "basic", "pd"), ("certs", "basic"), ("drain", "node-0")):
                assert (0, "") == plugin(*arguments, "-n", namespace)[::2], arguments
        finally:
            real.client.delete(CLUSTER_ROLE_BINDINGS, name)


def _binding(kind: str, name: str, role: str, namespace: str) -> Json:
    """The role, for the service account `default` of a namespace."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }
