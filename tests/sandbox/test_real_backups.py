"""Jobs of Backups and Restores as processes: the real `backup-manager`, a program in BR's place, a local volume."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from apis.backups import Backup
from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from cli import manifests
from kube.client import Client
from kube.objects import Json, condition_of
from kube.resources import (
    BACKUPS,
    COMPACT_BACKUPS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    RESTORES,
    TIDB_CLUSTERS,
    Resource,
)
from member.backups import jobs
from member.backups.pods import ManagerSettings
from sandbox.processes import own_programs
from sandbox.world import World
from tests.e2e import operators
from tests.e2e.worlds import SAMPLES
from tests.sandbox import stand_in_br
from tests.sandbox.real_pods import LIVES, NAMESPACE, PYTHON, holds, processes, program, running

pytestmark = pytest.mark.slow

_MOUNT = "/mnt/backup"
_VOLUME = {"name": "backups", "persistentVolumeClaim": {"claimName": "backups"}}
_STEPS = ("Backup", "Restore", "Job")
_WITHOUT_GC = "[gc]\nratio-threshold = -1.0\n"
_SAMPLE = manifests.read(SAMPLES / "backup.yaml")


@dataclass(frozen=True, slots=True)
class Place:
    """A sandbox with a simulated cluster and an operator; `volumes` has a directory for each volume."""

    world: World
    volumes: Path

    def begin(self, resource: Resource, name: str, **spec: object) -> None:
        """Create a Backup or Restore of the sample's cluster."""
        body: Json = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        self.world.client().create(resource, body | {"spec": {"br": {"cluster": "basic"}, **spec}}, NAMESPACE)

    def status(self, resource: Resource, name: str) -> Json:
        found: Json = self.world.client().get(resource, name, NAMESPACE).decode().get("status") or {}
        return found

    def reached(self, resource: Resource, name: str, *phases: str) -> Json:
        """The status once the phase is one of these."""
        holds(
            lambda: self.status(resource, name).get("phase") in phases, lambda: json.dumps(self.status(resource, name))
        )
        return self.status(resource, name)

    def pod(self, job: str) -> Json:
        """The only pod of a Job."""
        label = f"job-name={job}"
        (found,) = self.world.client().list_page(PODS, NAMESPACE, label_selector=label).items
        tree: Json = found.decode()
        return tree

    def files(self, prefix: str) -> Path:
        """The directory of a prefix on the volume of the claim."""
        uid = self.world.client().get(PERSISTENT_VOLUME_CLAIMS, "backups", NAMESPACE).metadata.uid
        return self.volumes / quote(uid, safe="") / prefix


def local(prefix: str) -> Json:
    """A place on the sample's volume."""
    return {"prefix": prefix, "volume": _VOLUME, "volumeMount": {"name": "backups", "mountPath": _MOUNT}}


def ended(client: Client, job: str) -> tuple[int | None, int | None]:
    """The numbers of a Job's pods that have succeeded and failed."""
    status: Json = client.get(JOBS, job, NAMESPACE).decode().get("status") or {}
    return status.get("succeeded"), status.get("failed")


@pytest.fixture(autouse=True)
def _no_thread_left_behind() -> None:
    """The threads of pods end with the module's sandbox."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("backups")
    binaries = directory / "binaries"
    binaries.mkdir()
    text = Path(stand_in_br.__file__).read_text("utf-8")
    (binaries / "br").write_text(f"#!{PYTHON}\n{text}", "utf-8")
    (binaries / "br").chmod(0o755)
    with running(binaries, as_root=False, keep=directory / "keep") as world:
        kubeconfig, (_, proxy) = world.write_kubeconfig(directory), world.serve_http()
        environment = operators.reaching(kubeconfig, proxy, HELM_RELEASE="backups")
        with operators.running(directory / "operator.log", environment):
            manifests.apply(world.client(), [each for each in _SAMPLE if each.kind not in _STEPS])
            # restores to a point in time need it, and TiKV would be restarted for that
            world.client().patch(TIDB_CLUSTERS, "basic", NAMESPACE, {"spec": {"tikv": {"config": _WITHOUT_GC}}})
            place = Place(world, directory / "keep" / "volumes")
            holds(lambda: condition_of(_conditions(place), "Ready").get("status") == "True", lambda: _conditions(place))
            yield place


def _conditions(place: Place) -> list[Json]:
    return place.status(TIDB_CLUSTERS, "basic").get("conditions") or []


@pytest.fixture(scope="module")
def whole(place: Place) -> Json:
    """The status of a Backup that has ended."""
    place.begin(BACKUPS, "whole", local=local("whole"), tableFilter=["shop.*"])
    return place.reached(BACKUPS, "whole", "Complete", "Failed")


def test_a_restore_reads_the_files_of_a_backup(place: Place, whole: Json) -> None:
    assert ("Complete", f"local://{_MOUNT}/whole", "449000000000") == tuple(
        whole.get(name) for name in ("phase", "backupPath", "commitTs")
    )
    where = ["--pd=basic-pd.default:2379", f"--storage=local://{_MOUNT}/whole"]
    arguments = json.loads((place.files("whole") / "arguments").read_text("utf-8"))
    assert ["backup", "full", *where, "--filter", "shop.*"] == arguments
    place.begin(RESTORES, "whole", local=local("whole"))
    restored = place.reached(RESTORES, "whole", "Complete", "Failed")
    assert ("Complete", "449000000000") == (restored["phase"], restored.get("commitTs")), restored
    assert ["hello", "restore", "full", *where] == json.loads((place.files("whole") / "restored").read_text("utf-8"))
    client = place.world.client()
    holds(lambda: ended(client, "restore-whole") == (1, None), lambda: ended(client, "restore-whole"))
    assert "Succeeded" == place.pod("restore-whole")["status"]["phase"]


def test_a_failure_of_br_shows_in_the_conditions_the_job_and_the_pod(place: Place) -> None:
    br = {"cluster": "basic", "options": ["--comression=zstd"]}
    place.begin(BACKUPS, "mistyped", local=local("mistyped"), br=br)
    failed = condition_of(place.reached(BACKUPS, "mistyped", "Failed")["conditions"], "Failed")
    assert "BackupDataToRemoteFailed" == failed["reason"]
    assert failed["message"].startswith("BR ended with exit code 1: Error: unknown flag: --comression")
    client = place.world.client()
    holds(lambda: ended(client, "backup-mistyped") == (None, 1), lambda: ended(client, "backup-mistyped"))
    pod = place.pod("backup-mistyped")
    end = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ("Failed", 1, "Error") == (pod["status"]["phase"], end["exitCode"], end["reason"])
    assert "BackupDataToRemoteFailed: BR ended with exit code 1: Error: unknown flag" in end["message"]


def test_a_deleted_backup_ends_br_and_its_pod(place: Place) -> None:
    place.begin(BACKUPS, "endless", local=local("endless"))
    holds(lambda: bool(place.status(BACKUPS, "endless").get("progresses")), lambda: place.status(BACKUPS, "endless"))
    assert 25 == place.status(BACKUPS, "endless")["progresses"][0]["progress"]
    assert processes(f"local://{_MOUNT}/endless")
    pod = place.pod("backup-endless")["metadata"]["uid"]
    assert list(place.volumes.glob(f"{pod}*"))
    place.world.client().delete(BACKUPS, "endless", NAMESPACE)
    holds((place.files("endless") / "ended").exists, lambda: "BR got no SIGTERM")
    holds(lambda: not processes(f"local://{_MOUNT}/endless"), lambda: "BR still runs")
    holds(
        lambda: not place.world.client().list_page(PODS, NAMESPACE, label_selector="job-name=backup-endless").items,
        lambda: "the pod is still there",
    )
    holds(lambda: not list(place.volumes.glob(f"{pod}*")), lambda: "its volume with the program br is still there")


@pytest.mark.usefixtures("whole")
def test_a_log_backup_starts_and_a_restore_goes_to_a_point_in_time(place: Place) -> None:
    place.begin(BACKUPS, "log", local=local("log"), backupMode="log")
    place.reached(BACKUPS, "log", "Running")
    snapshot = {"local": local("whole")}
    pitr = {"restoreMode": "pitr", "pitrRestoredTs": "449000000001", "pitrFullBackupStorageProvider": snapshot}
    place.begin(RESTORES, "point", local=local("log"), **pitr)
    restored = place.reached(RESTORES, "point", "Complete", "Failed")
    assert ("Complete", "449000000001") == (restored["phase"], restored.get("commitTs")), restored
    table, *arguments = json.loads((place.files("log") / "restored").read_text("utf-8"))
    assert ("hello", ["restore", "point"]) == (table, arguments[:2])
    assert f"--full-backup-storage=local://{_MOUNT}/whole" in arguments


def test_a_compaction_without_tikv_ctl_names_it(place: Place) -> None:
    place.begin(COMPACT_BACKUPS, "small", local=local("log"), startTs="1", endTs="2", maxRetryTimes=0)
    holds(lambda: place.status(COMPACT_BACKUPS, "small").get("state") == "Failed", lambda: "it has not failed")
    message = place.status(COMPACT_BACKUPS, "small")["message"]
    assert "lacks tikv-ctl: put it there, e.g. with tiup install ctl" in message


def test_with_a_real_pd_and_no_br_the_condition_says_what_to_install(tmp_path: Path) -> None:
    program(tmp_path, "pd-server", LIVES)
    with running(tmp_path, as_root=os.geteuid() == 0) as world:
        client = world.client()
        manifests.apply(client, [each for each in _SAMPLE if each.kind in ("ServiceAccount", "PersistentVolumeClaim")])
        tree: Json = {"apiVersion": BACKUPS.api_version, "kind": "Backup", "metadata": {"name": "none"}}
        created = client.create(BACKUPS, tree | {"spec": {"br": {"cluster": "basic"}, "local": local("")}}, NAMESPACE)
        sample = next(each.body for each in _SAMPLE if each.kind == "TidbCluster")
        backup = decode(created.decode(), Backup)
        client.create(JOBS, jobs.snapshot_job(backup, decode(sample, TidbCluster), {}, ManagerSettings()), NAMESPACE)
        place = Place(world, tmp_path)
        failed = condition_of(place.reached(BACKUPS, "none", "Failed")["conditions"], "Failed")
        message = f"BR ended with exit code 127: {tmp_path} lacks br: put it there, e.g. with tiup install br"
        assert message == failed["message"]


@pytest.mark.parametrize(("programs", "real"), [({"br"}, True), ({"pd-server"}, True), ({"tool"}, False)])
def test_jobs_are_simulated_without_tools_beside_a_simulated_pd(programs: set[str], real: bool) -> None:
    assert real == own_programs.is_real(programs)


def test_a_missing_tool_is_replaced_by_a_program_that_says_so(tmp_path: Path) -> None:
    made = dict(own_programs.stand_ins(tmp_path / "made", {"br"}, Path("/it's here")))
    assert {"tikv-ctl", "dumpling", "tidb-lightning"} == made.keys()
    ended = subprocess.run([made["dumpling"]], capture_output=True, text=True, check=False)
    text = "/it's here lacks dumpling: put it there, e.g. with tiup install dumpling\n"
    assert (127, text) == (ended.returncode, ended.stderr)
