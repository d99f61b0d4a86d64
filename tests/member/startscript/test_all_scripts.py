"""Properties of every start script (objects.md 7.2)."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from apis.tidbcluster import TidbCluster
from member.startscript import pd_script, tidb_script, tikv_script
from tests.member.startscript.clusters import cluster, v2
from tests.member.startscript.pods import SHELLS, pod_of

Script = Callable[[TidbCluster], str]

SCRIPTS = [("pd", pd_script), ("tikv", tikv_script), ("tidb", tidb_script)]
MTLS = {"enabled": True, "enableDiscoveryMTLS": True}
VARIANTS = [
    cluster(),
    cluster(clusterDomain="c.local", tlsCluster=MTLS, acrossK8s=True, preferIPv6=True, enableDynamicConfiguration=True),
    cluster(pd={"startUpScriptVersion": "v1", "dataSubDir": "a b"}, tikv={"dataSubDir": "c"}),
    cluster(pd={"mode": "ms", "initWaitTime": 3}, pdms=[{"name": "tso", "replicas": 1}]),
    cluster(tidb={"plugins": ["a", "b"], "arguments": ["--x=$NAMESPACE"]}),
    v2(acrossK8s=True, enableDynamicConfiguration=True, tidb={"plugins": ["a"], "binlogEnabled": True}),
    v2("WaitForDnsNameIpMatch", "BashShebang", pd={"initWaitTime": 3}),
    v2("PreferPDAddressesOverDiscovery", "NoWaitDNS", pdAddresses=["http://a:2379"]),
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("component", "script"), SCRIPTS)
@pytest.mark.parametrize("tc", [cluster(), v2()])
@pytest.mark.rule("objects-3.7")
def test_debug_mode_starts_nothing(component: str, script: Script, tc: TidbCluster, shell: str, tmp_path: Path) -> None:
    pod = pod_of(component, tmp_path, shell)
    pod.write("etc/podinfo/annotations", 'a="b"\nrunmode="debug"\nz="y"')
    pod.replaces("tail", '#!/bin/sh\necho "blocked: $*"\n')
    run = pod.run(script(tc))
    assert (0, "entering debug mode\nblocked: -f /dev/null\n", None) == (run.code, run.output, run.argv)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("component", "script"), SCRIPTS)
@pytest.mark.rule("objects-7.2")
def test_without_the_annotations_the_script_ends(component: str, script: Script, shell: str, tmp_path: Path) -> None:
    pod = pod_of(component, tmp_path, shell)
    (pod.root / "etc/podinfo/annotations").unlink()
    run = pod.run(script(cluster()))
    assert (1, None) == (run.code, run.argv)
    assert run.output.startswith("/etc/podinfo/annotations does not exist")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.rule("objects-3.7")
def test_annotations_are_read_and_not_executed(shell: str, tmp_path: Path) -> None:
    pod = pod_of("tidb", tmp_path, shell)
    pod.write("etc/podinfo/annotations", 'note="runmode=\\"debug\\""\nrunmode="$(exit 9)"\nexit 7')
    run = pod.run(tidb_script(cluster()))
    assert (0, True) == (run.code, run.argv is not None)


@pytest.mark.parametrize(("component", "script"), SCRIPTS)
@pytest.mark.rule("objects-7.2")
def test_equal_options_give_equal_v1_text_in_every_cluster(component: str, script: Script) -> None:
    def named(name: str, namespace: str) -> TidbCluster:
        tc = cluster(acrossK8s=True, clusterDomain="c.local")
        tc.metadata.name, tc.metadata.namespace = name, namespace
        return tc

    assert script(named("demo", "ns")) == script(named("other", "elsewhere"))


@pytest.mark.parametrize(("component", "script"), SCRIPTS)
@pytest.mark.parametrize("tc", VARIANTS)
def test_scripts_are_clean_posix_shell(component: str, script: Script, tc: TidbCluster) -> None:
    assert "" == shellcheck(script(tc))


@pytest.mark.parametrize("script", [tikv_script, tidb_script])
@pytest.mark.parametrize("make", [cluster, v2])
def test_scripts_of_clusters_without_pd_are_clean(script: Script, make: Callable[..., TidbCluster]) -> None:
    tc = make(without_pd=True, cluster={"name": "main", "namespace": "base"})
    assert "" == shellcheck(script(tc))


def shellcheck(text: str) -> str:
    """The findings of shellcheck; it ignores the first line, as the pod runs `sh <script>`."""
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    check = ["shellcheck", "--shell=sh", "-"]
    return subprocess.run(check, input=text, capture_output=True, text=True, timeout=60, check=False).stdout
