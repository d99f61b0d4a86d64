"""The state of log backups in a simulated etcd (backup.md 3.8)."""

import base64
import json

import pytest

from dataplane.errors import DataPlaneError
from dataplane.log_backups import LogTask, end_log_task, log_task_names, pause_reason, read_log_task
from ports.clock import FakeClock
from tests.dataplane.log_tasks import EtcdWorld

TSO = 448_000_000_000_000_000


@pytest.mark.rule("backup-3.8")
def test_reads_a_task_through_its_life() -> None:
    world = EtcdWorld(FakeClock())
    task = world.task()
    assert LogTask(exists=False) == read_log_task(world.client, "demo")
    task.begin(TSO)
    assert LogTask(exists=True, checkpoint=TSO) == read_log_task(world.client, "demo")
    task.advance(TSO + 5)
    task.pause()
    assert LogTask(exists=True, checkpoint=TSO + 5, paused="manual") == read_log_task(world.client, "demo")
    task.resume()
    task.fail("out of space", store=4)
    assert LogTask(True, TSO + 5, "Paused by error(store 4): out of space") == read_log_task(world.client, "demo")
    task.stop()
    assert LogTask(exists=False) == read_log_task(world.client, "demo")
    assert {} == world.etcd.keys


@pytest.mark.rule("backup-3.8")
def test_distinguishes_tasks_with_a_common_prefix() -> None:
    """v1.6 reads by prefix and mixes up `a` and `ab`."""
    world = EtcdWorld(FakeClock())
    world.task("demo2").begin(TSO)
    world.task("demo2").fail("no")
    assert LogTask(exists=False) == read_log_task(world.client, "demo")
    world.task("demo").begin(7)
    assert LogTask(exists=True, checkpoint=7) == read_log_task(world.client, "demo")


def test_a_malformed_checkpoint_counts_as_unknown() -> None:
    world = EtcdWorld(FakeClock())
    world.task().begin(TSO)
    world.etcd.put(b"/tidb/br-stream/checkpoint/demo/central_global", b"abc")
    assert 0 == read_log_task(world.client, "demo").checkpoint


def test_an_etcd_without_a_leader_is_an_error() -> None:
    world = EtcdWorld(FakeClock())
    world.answers = False
    with pytest.raises(DataPlaneError):
        read_log_task(world.client, "demo")


def said(severity: str, media: str, payload: bytes) -> bytes:
    encoded = base64.b64encode(payload).decode()
    return json.dumps({"severity": severity, "payload_type": media, "payload": encoded}).encode()


PROTOBUF = "application/x-protobuf;messagetype=brpb.StreamBackupError"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "manual"),
        (said("MANUAL", "text/plain", b"x"), "manual"),
        (said("ERROR", "text/plain", b"disk is full"), "disk is full"),
        (said("ERROR", PROTOBUF, b"\x1a\x03bad\x20\x07"), "Paused by error(store 7): bad"),
        (said("ERROR", "text/plain", b"\x1b[2J" + b"x" * 1000), f"\N{REPLACEMENT CHARACTER}[2J{'x' * 195}…"),
        (said("ERROR", PROTOBUF, b"\xff\xff"), "error"),
        (said("ERROR", "image/png", b"x"), "error"),
        (b'{"severity": "ERROR", "payload": "%"}', "error"),
        (b"{", "unknown"),
    ],
)
@pytest.mark.rule("backup-3.8")
def test_reads_the_reason_of_a_pause(value: bytes, reason: str) -> None:
    assert reason == pause_reason(value)


def test_ending_a_task_removes_its_records_and_no_others() -> None:
    world = EtcdWorld(FakeClock())
    for name in ("demo", "demo2", "dem"):
        world.task(name).begin(TSO)
        world.task(name).fail("disk full")
    assert ["dem", "demo", "demo2"] == log_task_names(world.client)
    end_log_task(world.client, "demo")
    assert ["dem", "demo2"] == log_task_names(world.client)
    assert not [key for key in world.etcd.keys if b"/demo/" in key + b"/"]
    assert 8 == len(world.etcd.keys)
