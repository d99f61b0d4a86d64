"""Types that threads share are prepared first (docs/adr/0006)."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from ports.structs import convert, decoder

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "apis",
    "backup_manager",
    "ca",
    "cli",
    "controller_manager",
    "controllers",
    "dataplane",
    "discovery",
    "informers",
    "kube",
    "member",
    "meta",
    "rehearsal",
    "sandbox",
    "scheduler",
    "workqueue",
)
UNPREPARED = re.compile(r"msgspec\.(json\.decode\([^#\n]*type=|convert\()|inspect\.(multi_)?type_info\(")

RACE = """
import sys, threading
from apis.decoding import decode
from apis.tidbcluster import TidbCluster
from apis.unknown_fields import unknown_fields
sys.setswitchinterval(1e-6)
tree = {"metadata": {"name": "x"}, "spec": {"pd": {"replicas": 1}, "tikv": {"replicas": 1}, "tidb": {"replicas": 1}}}
threads = [threading.Thread(target=use, args=(tree, TidbCluster)) for use in [{first}] + [decode] * 7]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


class Point(msgspec.Struct):
    """A type that only this test uses."""

    x: int


def test_a_decoder_is_created_once() -> None:
    assert decoder(Point) is decoder(Point)
    assert Point(1) == decoder(Point).decode(b'{"x": 1}') == convert({"x": 1}, Point)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["decode", "unknown_fields"])
def test_workers_may_decode_their_first_cluster_concurrently(first: str) -> None:
    race = RACE.replace("{first}", first)
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", race], cwd=ROOT, capture_output=True, timeout=60, check=False)
        assert (0, b"") == (done.returncode, done.stderr)


def test_all_shared_types_are_prepared_before_decoding() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
        for line in path.read_text().splitlines()
        if UNPREPARED.search(line)
    ]
    assert [] == found
