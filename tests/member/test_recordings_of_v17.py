"""Our objects for the fields that v1.7 adds are those that v1.7.0-alpha.13 made, by field.

It ran in the sandbox, with its own definitions; no registry serves its module, so that no target builds it.
`recorded/v17.json` has its objects for two clusters: `fts` with TiCI, and `side` with log tailers, server labels and a
probe; for a TidbMonitor, of whose scrape jobs it has TiFlash's and TiCI's; for two CompactBackups and a Restore. As in
recordings of v1.6, start scripts are left out: TiCDC's, which creates the changefeed in v1.7 and not here (TICI-26), is
among them.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from apis.backup_defaulting import with_compact_defaults, with_restore_defaults
from apis.compact_backups import CompactBackup
from apis.decoding import decode
from apis.restores import Restore
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.backups import jobs
from member.backups.pods import ManagerSettings
from member.monitor.objects import everything
from tests.member.recordings import Recording, differences, recorded
from tests.member.test_recordings_of_backups import SECRETS, unexplained
from tests.member.test_recordings_of_monitors import monitor_inputs

CONTAINER = "/spec/template/spec/containers/0"

EXPLAINED: Mapping[str, Mapping[str, str]] = {
    r"StatefulSet/fts-tici-(meta|worker)": {
        rf"{CONTAINER}/env/(#order|TZ/.*)": "v1.7 ignores spec.timezone (TICI-12)",
        rf"{CONTAINER}/readinessProbe/.*": "v1.7 has no probe: a pod is Ready while its process runs (TICI-12)",
    },
    r"ConfigMap/fts-tiflash": {
        "/data/proxy_templ.toml/storage/reserve-space": "v1.7 lets the proxy fill its disk (TICI-20)",
    },
    r"Role/.*": {"/rules/.*": "Discovery has fewer rights, as in clusters of v1.6"},
    r"Service/side-tiproxy": {"/spec/publishNotReadyAddresses": "as in v1.6 (docs/compat)"},
}
"""Why fields differ, by object and field."""

_SETTINGS = ManagerSettings("pingcap/tidb-backup-manager:v1.7.0")


def as_trees(item: Json) -> Json:
    """Configurations as trees: their layout means nothing."""
    data: dict[str, Any] = dict(item.get("data") or {})
    for key, text in data.items():
        if key == "config-file" or key.endswith(".toml"):
            data[key] = tomllib.loads(text)
    return item | ({"data": data} if data else {})


def test_objects_of_clusters_equal_v1_7() -> None:
    recording = Recording("v17")
    theirs, ours = recording.objects, recording.built()
    assert theirs.keys() == ours.keys()
    needed: set[str] = set()
    for key in theirs:
        explained = [
            each for pattern, fields in EXPLAINED.items() if re.fullmatch(pattern, key) for each in fields.items()
        ]
        for line in differences(as_trees(theirs[key]), as_trees(ours[key])):
            known = [why for field, why in explained if re.fullmatch(field, line.partition(": ")[0])]
            assert known, f"{key}: {line}"
            needed.update(known)
    assert needed == {why for fields in EXPLAINED.values() for why in fields.values()}


@pytest.mark.rule("MON-1", "MON-2")
def test_the_scrape_jobs_of_tiflash_and_tici_equal_v1_7() -> None:
    found = recorded("v17")
    (config,) = (item for item in found["monitors"] if item["kind"] == "ConfigMap")
    monitor, inputs = monitor_inputs([*found["monitors"], *found["items"]])
    targets = [replace(each, beyond_v16=frozenset({"tici-meta", "tici-worker"})) for each in inputs.clusters]
    (made,) = (
        body
        for _, body in everything(monitor, replace(inputs, clusters=targets))
        if "prometheus.yml" in body.get("data", {})
    )
    theirs, ours = (scrape_jobs(each["data"]["prometheus.yml"]) for each in (config, made))
    assert theirs == {name: ours[name] for name in theirs}


def scrape_jobs(text: str) -> dict[str, Json]:
    return {job["job_name"]: job for job in yaml.safe_load(text.replace("\t", " "))["scrape_configs"]}


def of_jobs(name: str, *kinds: str) -> Json:
    """A recorded Job, or the object of another kind that owns one."""
    items: list[Json] = recorded("v17")["jobs"]
    return next(item for item in items if item["kind"] in kinds and item["metadata"]["name"] == name)


def cluster(name: str) -> TidbCluster:
    clusters: list[TidbCluster] = Recording("v17").clusters
    return next(tc for tc in clusters if tc.metadata.name == name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shards", "/spec/backoffLimit: recorded 2147483647, not ours"),
        ("whole", r"(/spec/template)?/metadata/labels/.*"),
    ],
)
@pytest.mark.rule("CMP-7", "CMP-8", "CMP-10")
def test_jobs_of_compactions_equal_v1_7(name: str, expected: str) -> None:
    """The API server adds the limit. Labels of Jobs without shards are v1.6's (docs/compat/v1-7.md)."""
    compact = with_compact_defaults(decode(of_jobs(name, "CompactBackup"), CompactBackup))
    lines = unexplained(of_jobs(name, "Job"), jobs.compaction_job(compact, cluster("fts"), SECRETS, _SETTINGS))
    assert lines
    assert [] == [line for line in lines if not re.fullmatch(expected, line)]


@pytest.mark.parametrize("step", ["snapshot-restore", "log-restore"])
@pytest.mark.rule("RPL-10", "RPL-14")
def test_jobs_of_a_replication_restore_equal_v1_7(step: str) -> None:
    restore = with_restore_defaults(decode(of_jobs("second", "Restore"), Restore))
    made = jobs.step_job(restore, cluster("side"), SECRETS, _SETTINGS, step)
    uid = r"(/spec/template)?/metadata/labels/tidb.pingcap.com/restore-uid: .*"
    assert [] == [line for line in unexplained(of_jobs(f"second-{step}", "Job"), made) if not re.fullmatch(uid, line)]
