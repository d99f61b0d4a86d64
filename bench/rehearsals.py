"""The CPU time of rehearsals: of plans of an upgrade of 3/3/2 and of 50 TiKV, and of a drill at every moment of a roll.

CPU time, because a user's machine does little else meanwhile, and other load hardly lengthens it. A drill uses all
cores: on two, a user waits a little more than half of its time.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from bench.figures import show

_SAMPLE = Path(__file__).resolve().parents[1] / "manifests" / "samples" / "advanced.yaml"
_RUNS = 3
_AIMS: Mapping[str, float] = {"plan_3_3_2": 3.0, "plan_50_tikv": 15.0, "drill_every_moment_3_3_2": 60.0}
"""Seconds; of the drill twice the 30 s that a user may wait on two cores."""


def main() -> int:
    """Run it."""
    with tempfile.TemporaryDirectory() as directory:
        small, large = (_change(Path(directory) / str(tikv), tikv) for tikv in (3, 50))
        commands = {
            "plan_3_3_2": ["plan", *small],
            "plan_50_tikv": ["plan", *large],
            "drill_every_moment_3_3_2": ["drill", *small, "--fail=node/node-1", "--every-moment"],
        }
        for name, command in commands.items():
            show(f"{name}_cpu_best", min(_cpu(command) for _ in range(_RUNS)), _AIMS[name], "s", "aim")
    return 0


def _change(place: Path, tikv: int) -> Sequence[str]:
    """The flags of an upgrade of the sample with so many TiKV."""
    place.mkdir()
    cluster = yaml.safe_load(_SAMPLE.read_text(encoding="utf-8"))
    cluster["spec"]["tikv"]["replicas"] = tikv
    for name, version in (("from", "v8.5.2"), ("to", "v8.5.3")):
        cluster["spec"]["version"] = version
        (place / name).write_text(yaml.safe_dump(cluster), encoding="utf-8")
    return [f"--from={place / 'from'}", f"--to={place / 'to'}"]


def _cpu(command: Sequence[str]) -> float:
    """Seconds of CPU of the command and its copies."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([sys.executable, "-m", "cli", *command], stdout=subprocess.DEVNULL, check=False)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"{command[0]} ended with code {ended.returncode}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
