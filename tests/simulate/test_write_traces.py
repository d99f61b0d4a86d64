"""The writes of plans are recorded, and compared between commits (`python -m simulate traces`)."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kube.objects import Json
from ports.transport import Request
from simulate.engine.calls import Port, call
from simulate.engine.write_traces import Writes, WriteTrace, compared, load, save

_ROOT = Path(__file__).resolve().parents[2]
_POD = "/api/v1/namespaces/default/pods/basic-tikv-0"
_ONE = "8c0f0a44-7b5f-4a53-b1d8-2f9a4a1d6a01"
_OTHER = "aa0f0a44-7b5f-4a53-b1d8-2f9a4a1d6a02"


def written(*requests: tuple[str, str, Json | None]) -> list[str]:
    trace = WriteTrace()
    for method, path, body in requests:
        request = Request(method, path, body=msgspec.json.encode(body) if body else None)
        trace.note(call("operator", 1, Port.KUBERNETES, request))
    return trace.writes


def patch(uid: str, version: str, time: str) -> tuple[str, str, Json]:
    return "PATCH", _POD, {"metadata": {"uid": uid, "resourceVersion": version}, "status": {"since": time}}


def test_versions_times_and_ids_make_no_difference() -> None:
    one = written(patch(_ONE, "7", "2026-01-01T00:00:00Z"), patch(_OTHER, "8", "2026-01-01T00:00:01Z"))
    other = written(patch(_OTHER, "17", "2026-01-01T00:00:09Z"), patch(_ONE, "18", "2026-01-01T00:00:10.5Z"))

    assert one == other


def test_a_recreated_object_of_the_same_name_differs() -> None:
    time = "2026-01-01T00:00:00Z"

    assert written(patch(_ONE, "7", time), patch(_ONE, "8", time)) != written(
        patch(_ONE, "7", time), patch(_OTHER, "8", time)
    )


@pytest.mark.parametrize(
    "other",
    [
        ("PUT", _POD, {"spec": {"replicas": 3}}),
        ("PATCH", f"{_POD}/status", {"spec": {"replicas": 3}}),
        ("PATCH", f"{_POD}?dryRun=All", {"spec": {"replicas": 3}}),
        ("PATCH", _POD.replace("tikv-0", "tikv-1"), {"spec": {"replicas": 3}}),
        ("PATCH", _POD, {"spec": {"replicas": 4}}),
        ("PATCH", _POD, None),
    ],
)
def test_method_target_and_body_make_a_difference(other: tuple[str, str, Json | None]) -> None:
    assert written(("PATCH", _POD, {"spec": {"replicas": 3}})) != written(other)


def test_reads_are_not_recorded() -> None:
    assert [] == written(("GET", _POD, None))


def test_saved_traces_load_unchanged_and_equal_traces_give_equal_files(tmp_path: Path) -> None:
    traces: dict[str, Writes] = {"loss/1": ("a\n1", "b\n2", "a\n1"), "dm/2": ("b\n2",)}
    save(tmp_path / "one", traces)
    save(tmp_path / "other", dict(reversed(traces.items())))

    assert traces == load(tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_differences_show_both_sides_by_family() -> None:
    before: dict[str, Writes] = {"dm/1": ('x: PATCH a\n{"replicas": 3}',), "loss/1": ("x: POST b\n",), "loss/2": ()}
    after: dict[str, Writes] = {"dm/1": ('x: PATCH a\n{"replicas": 4}',), "loss/1": ("x: POST b\n",), "loss/3": ()}

    assert [
        "dm: 1 of 1 plans differ",
        "only before: 1 plans, such as loss/2",
        "only after: 1 plans, such as loss/3",
        "\ndm/1: 1 writes only before, 1 only after; first at write 1",
        "--- before",
        "+++ after",
        "@@ -1,4 +1,4 @@",
        " x: PATCH a",
        " {",
        '-  "replicas": 3',
        '+  "replicas": 4',
        " }",
    ] == list(compared(before, after))


def test_reports_missing_writes_and_a_different_order() -> None:
    one, other = "x: POST a\n", "x: POST b\n"

    shorter = list(compared({"dm/1": (one, other)}, {"dm/1": (one,)}))
    turned = list(compared({"dm/1": (one, other)}, {"dm/1": (other, one)}))

    assert "\ndm/1: 1 writes only before, 0 only after; first at write 2" in shorter
    assert "+(no more writes)" in shorter
    assert "\ndm/1: the same writes in another order; first at write 1" in turned


@pytest.mark.slow
def test_processes_with_different_hash_seeds_record_the_same_file(tmp_path: Path) -> None:
    files = [_recorded(tmp_path / seed, seed) for seed in ("0", "4711")]

    assert files[0] == files[1]
    assert 5 < len(load(tmp_path / "0")["tiny-in-two"])


def _recorded(path: Path, hash_seed: str) -> bytes:
    plan = path.with_suffix(".yaml")
    edit = "{at: 1.0, spec: {tikv: {replicas: 2}}}"
    plan.write_text(f"name: tiny-in-two\ncluster: tiny\nbudget: 20\nedits: [{edit}]\n", encoding="utf-8")
    command = [sys.executable, "-m", "simulate", "--jobs", "1", "traces", "record", str(path), str(plan)]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, timeout=100, check=True)
    return path.read_bytes()
