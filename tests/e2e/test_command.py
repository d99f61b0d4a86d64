"""The command `tidb-operator` as a newcomer types it."""

import contextlib
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli.main import main
from kube.client import Client
from kube.config import load_kubeconfig
from kube.http_transport import HttpTransport
from tests.e2e import operators
from tests.e2e.guides import KUBECTL
from tests.e2e.operators import ROOT, Operator
from tests.e2e.waiting import CLOCK, eventually
from tests.e2e.worlds import SAMPLES, create_cluster, is_ready, sample

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-m", "cli")
V2 = ROOT / "tests" / "cases" / "inputs" / "10-v2.yaml"
DEMO = (*COMMAND, "run", "--sandbox", "--exit-when-ready", "--cluster")


def _demo(*files: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DEMO, *map(str, files)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_sample_gets_ready_in_a_sandbox_of_its_own() -> None:
    done = _demo(SAMPLES / "basic.yaml")
    assert (0, "") == (done.returncode, done.stderr)
    for component in ("pd", "tikv", "tidb"):
        assert re.search(rf"^basic  {component} +1/1 ready +Done: ", done.stdout, re.MULTILINE)
    assert re.search(r"^basic  cluster +1/1 ready +Ready: ", done.stdout, re.MULTILINE)
    assert re.search(r"^Ready after \d+\.\d s\.$", done.stdout, re.MULTILINE)


def test_the_objects_of_a_file_wait_for_each_other_and_a_restore_recovers_lost_data() -> None:
    done = _demo(SAMPLES / "backup.yaml")
    assert (0, "") == (done.returncode, done.stderr)
    told = done.stdout.splitlines()
    expected = (
        r"basic  cluster +1/1 ready +Ready: .*",
        r"write  job +1/1 ready +done",
        r"demo  backup +0/1 ready +Running: Full Backup \d+ %",
        r"demo  backup +1/1 ready +Complete: \d+ B, took \d+s, as of \d+",
        r"lose  job +1/1 ready +done",
        r"demo  restore +0/1 ready +Running: Full Restore 100 %",
        r"demo  restore +1/1 ready +Complete: .*",
        r"look  job +1/1 ready +done",
        r"Ready after \d+\.\d s\.",
    )
    lines = iter(told)
    for pattern in expected:
        assert any(re.fullmatch(pattern, line) for line in lines), (pattern, told)


def test_a_failed_restore_is_reported_with_its_reason(tmp_path: Path) -> None:
    documents = [each for each in yaml.safe_load_all((SAMPLES / "backup.yaml").read_text()) if each["kind"] != "Backup"]
    file = tmp_path / "no-backup.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    done = _demo(file)
    assert 1 == done.returncode
    assert (
        "demo does not get Ready by itself: Failed: there is no backupmeta in local:///mnt/backup/demo" in done.stdout
    )


@pytest.mark.rule("9")
def test_a_sample_with_tls_gets_the_certificates_that_it_lacks_and_gets_ready() -> None:
    """Over real sockets: the operator's requests shake hands with the proxy of the sandbox."""
    done = _demo(SAMPLES / "tls.yaml")
    assert (0, "") == (done.returncode, done.stderr)
    for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        assert re.search(rf"^tls  {component} +{replicas}/{replicas} ready +Done: ", done.stdout, re.MULTILINE)
    assert re.search(r"^Ready after \d+\.\d s\.$", done.stdout, re.MULTILINE)


@pytest.mark.rule("9")
def test_every_component_with_tls_gets_ready() -> None:
    done = _demo(SAMPLES / "everything.yaml")
    assert (0, "") == (done.returncode, done.stderr)
    assert re.search(r"^everything  cluster +1/1 ready +Ready: ", done.stdout, re.MULTILINE)


_BESIDE_EACH_OTHER = (("basic", "dashboard", "initializer", "backup-schedule"), ("advanced", "dm", "monitored"))


@pytest.mark.parametrize("names", _BESIDE_EACH_OTHER, ids=" ".join)
def test_samples_of_several_files_become_ready_side_by_side(names: tuple[str, ...]) -> None:
    done = _demo(*(SAMPLES / f"{name}.yaml" for name in names))
    assert (0, "") == (done.returncode, done.stderr), done.stdout
    assert re.search(r"^Ready after \d+\.\d s\.$", done.stdout, re.MULTILINE)


def test_every_sample_is_tried_here() -> None:
    tried = {name for names in _BESIDE_EACH_OTHER for name in names} | {"backup", "everything", "tls"}
    assert tried == {path.stem for path in SAMPLES.glob("*.yaml")}


def test_a_file_with_nothing_that_gets_ready_is_no_success() -> None:
    done = _demo(SAMPLES / "backup-schedule.yaml")
    assert (1, "") == (done.returncode, done.stdout)
    assert "backup-schedule.yaml: contains nothing that gets Ready, such as a TidbCluster" in done.stderr


def test_all_documents_of_a_file_are_applied(tmp_path: Path) -> None:
    one, other = sample("basic"), sample("basic")
    one["metadata"] = {"name": "one", "namespace": "team-a"}
    other["metadata"] = {"name": "other", "namespace": "team-b"}
    file = tmp_path / "two.yaml"
    file.write_text(yaml.safe_dump_all([one, other]))
    done = _demo(file)
    assert (0, "") == (done.returncode, done.stderr)
    for name in ("team-a/one", "team-b/other"):
        assert re.search(rf"^{name}  cluster +1/1 ready +Ready: ", done.stdout, re.MULTILINE)


def test_on_a_terminal_the_view_is_live() -> None:
    primary, secondary = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"}
    with subprocess.Popen(
        [*DEMO, str(SAMPLES / "basic.yaml")],
        cwd=ROOT,
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        env=environment,
    ) as process:
        os.close(secondary)
        shown = b""
        # the other side's end is an error here
        with contextlib.suppress(OSError):
            while chunk := os.read(primary, 65536):
                shown += chunk
        os.close(primary)
        assert 0 == process.wait(10)
    text = shown.decode()
    assert "\x1b[" in text
    assert "\x1b[?25h" in text
    assert "Ready after" in text
    assert "TiDB cluster is fully up and running" in text
    assert "Traceback" not in text


_BAD = {
    "not-yaml": ("a: [", "not valid YAML"),
    "no-object": ("", "contains no object"),
    "unknown-field": (
        "{apiVersion: pingcap.com/v1alpha1, kind: TidbCluster, metadata: {name: a}, spec: {tikv: {replica: 3}}}",
        "spec.tikv.replica: unknown field; did you mean replicas?",
    ),
    "invalid-value": (
        "{apiVersion: pingcap.com/v1alpha1, kind: TidbCluster, metadata: {name: a}, spec: {version: v8.5.2, "
        "pd: {replicas: -1, requests: {storage: 1Gi}}}}",
        "spec.pd.replicas",
    ),
    "unknown-kind": (
        "{apiVersion: pingcap.com/v1alpha1, kind: TiDBCluster, metadata: {name: a}}",
        "kind TiDBCluster is not part of pingcap.com/v1alpha1 here; did you mean TidbCluster?",
    ),
    "unknown-group": ("{apiVersion: acme.io/v1, kind: Gadget, metadata: {name: a}}", "acme.io/v1 is not served"),
}


@pytest.mark.parametrize("mistake", [*_BAD, "missing-file"])
def test_a_mistake_in_a_manifest_is_reported_in_the_words_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    file = tmp_path / "tc.yaml"
    text, told = _BAD.get(mistake, ("", "No such file"))
    if mistake != "missing-file":
        file.write_text(text)
    assert 1 == main(["run", "--sandbox", "--exit-when-ready", "--cluster", str(file)])
    complaints = capsys.readouterr().err
    assert complaints.startswith(f"tidb-operator: {file}")
    assert told in complaints
    assert "Traceback" not in complaints


def test_a_cluster_that_does_not_get_ready_fails_the_command_with_the_reason(tmp_path: Path) -> None:
    cluster = sample("basic")
    cluster["spec"]["paused"] = True
    file = tmp_path / "tc.yaml"
    file.write_text(yaml.safe_dump(cluster))
    done = _demo(file)
    assert (1, "") == (done.returncode, done.stderr)
    assert "basic does not get Ready by itself: Paused: " in done.stdout


_OUTPUTS = {
    "a full disk": ("> /dev/full", 1, "can't write to standard output: No space left on device"),
    "a reader that has gone": ("| head -0; exit ${PIPESTATUS[0]}", 141, ""),
    "a closed output": (">&- 2>&-", 0, ""),
}


@pytest.mark.parametrize("output", _OUTPUTS)
def test_a_closed_output_pipe_ends_the_command_without_a_trace(output: str) -> None:
    redirection, code, told = _OUTPUTS[output]
    command = shlex.join([*DEMO, str(SAMPLES / "basic.yaml")])
    done = subprocess.run(
        ["/bin/bash", "-c", f"{command} {redirection}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert code == done.returncode
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unwritable_directory_is_reported(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    done = subprocess.run(
        [*COMMAND, "sandbox", "--dir", str(taken)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert 1 == done.returncode
    assert (
        f"tidb-operator: {taken}: can't write `kubeconfig` and `env` here: File exists; name another --dir\n"
        == done.stderr
    )


def test_help_names_every_flag_and_version_prints_the_version() -> None:
    def said(*arguments: str) -> str:
        done = subprocess.run([*COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    assert re.fullmatch(r"\d+\.\d+\.\d+\n", said("--version"))
    assert all(flag in said("--help") for flag in ("--cluster", "--exit-when-ready", "--dir", "manifests", "--version"))
    of_run = said("run", "-help")
    assert all(flag in of_run for flag in ("--sandbox", "--cluster", "--exit-when-ready", "--workers", "--selector"))


def test_an_operator_that_cannot_start_ends_the_command_with_the_reason() -> None:
    command = [*DEMO, str(SAMPLES / "basic.yaml"), "--metrics-addr=192.0.2.1:80"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert 1 == done.returncode
    assert re.fullmatch(r"tidb-operator: .*192\.0\.2\.1:80.*\n", done.stderr)


def test_an_unknown_flag_is_named() -> None:
    done = subprocess.run(
        [*COMMAND, "run", "--sandbox", "--worker=3"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert 2 == done.returncode
    assert "--worker=3" in done.stderr
    assert "Traceback" not in done.stderr


@contextlib.contextmanager
def _sandbox(directory: Path) -> Iterator[Operator]:
    process = Operator(directory / "sandbox.log", {}, "sandbox", "--dir", str(directory / "world"), program=COMMAND)
    try:
        eventually(lambda: "Ctrl-C" in process.said, told=lambda: process.said)
        yield process
    finally:
        if process.is_running:
            process.kill()
            process.wait()


def test_an_operator_in_another_terminal_finds_the_sandbox_by_its_env_file(tmp_path: Path) -> None:
    env = tmp_path / "world" / "env"
    with _sandbox(tmp_path) as sandbox:
        script = f'. {env} && exec {sys.executable} -m cli run "$@"'
        shell = ("/bin/sh", "-c", script, "sh")
        with operators.running(tmp_path / "operator.log", {}, program=shell) as operator:
            transport = HttpTransport(load_kubeconfig(str(tmp_path / "world" / "kubeconfig"), CLOCK), {}, CLOCK)
            with contextlib.closing(transport):
                client = Client(transport)
                create_cluster(client, sample("basic"), "default")
                eventually(lambda: is_ready(client, "basic", "default"), told=lambda: operator.said[-3000:])
            assert 0 == operator.stop()
        sandbox.signal(signal.SIGINT)
        assert 0 == sandbox.wait()
    assert "Traceback" not in sandbox.said
    assert re.search(r"^page +http://127\.0\.0\.1:\d+/\?token=\S+$", sandbox.said, re.MULTILINE)


@pytest.mark.controlplane
def test_kubectl_explains_and_counts_quotas_in_the_sandbox(tmp_path: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip("no kubectl: run `make controlplane`")
    with _sandbox(tmp_path) as sandbox:

        def kubectl(*arguments: str) -> str:
            command = (str(KUBECTL), "--kubeconfig", str(tmp_path / "world" / "kubeconfig"), *arguments)
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            return done.stdout + done.stderr

        explained = kubectl("explain", "tidbcluster.spec.tikv", "--output", "plaintext-openapiv2")
        assert "RESOURCE: tikv <Object>" in explained
        assert 'no matches for kind "PDGroup"' in kubectl("apply", "-f", str(V2))
        kubectl("create", "quota", "none", "--hard=pods=0")
        assert "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0" in kubectl(
            "run", "a", "--image=b"
        )
        assert "pods: 0/0" in kubectl("get", "quota")
        sandbox.signal(signal.SIGINT)
        assert 0 == sandbox.wait()
