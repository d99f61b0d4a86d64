"""This project's own programs as processes: `backup-manager` with the tools of the directory, and Discovery.

In place of a tool that the directory lacks, pods of `backup-manager` find a program that says so and fails:
`backup-manager` writes that into the conditions of the object, as it does with every failure of a tool.
"""

import os
import re
import shlex
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sandbox.dataplane.processes import Launch
from sandbox.dataplane.script import is_script

MANAGER, DISCOVERY = "backup-manager", "tidb-discovery"
TOOLS = {"br": "br", "tikv-ctl": "ctl", "dumpling": "dumpling", "tidb-lightning": "tidb-lightning"}
"""What init containers copy out of images, or the image of `backup-manager` contains, with TiUP's components."""
IMAGES = ("tidb-operator-py-backup-manager", "tidb-backup-manager")
"""The names of the image of `backup-manager`: this project's, and v1.6's, which users may name."""

_ASKERS = {"tidb-cluster": "pd-server", "dm-cluster": "dm-master"}
"""The program that asks Discovery, by the label `app.kubernetes.io/name`."""
_COPIES = re.compile(r"cp /(\S+) /")
_ROOT = Path(__file__).parents[2]
"""The directory that contains this project's packages."""
_HIDDEN = ("/run", "/tmp")  # noqa: S108
"""Directories of the machine that containers do not see."""


def is_real(programs: Collection[str]) -> bool:
    """True if Jobs run as processes: there is a tool, or a PD that the simulated BR would not understand."""
    return not {"pd-server", *TOOLS}.isdisjoint(programs)


def program(image: str, command: Sequence[str]) -> str:
    """What a container of a Job runs: MANAGER by the name of its image, or the tool that an init container copies.

    Empty for any other container.
    """
    if not is_script(command):
        return MANAGER if image in IMAGES else ""
    copied = _COPIES.match(command[-1])
    return copied[1] if copied is not None and copied[1] in TOOLS else ""


def is_real_discovery(command: Sequence[str], labels: Mapping[str, str], programs: Collection[str]) -> bool:
    """True for Discovery if the pods that ask it are real.

    It knows a pod by its address, which requests of simulated pods do not come from.
    """
    is_discovery = command[:1] and command[0].rpartition("/")[2] == DISCOVERY
    return bool(is_discovery) and _ASKERS.get(labels.get("app.kubernetes.io/name", "")) in programs


def as_process(name: str, launch: Launch) -> Launch:
    """A container of MANAGER or DISCOVERY with the command line of a process, and with variables for Python."""
    # the image of `backup-manager` has an entry point, Discovery's container a command
    words = ("backup_manager", *launch.command) if name == MANAGER else ("discovery", *launch.command[1:])
    command = (sys.executable, "-m", *words)
    return replace(launch, command=command, env={"PYTHONPATH": str(_ROOT), **launch.env})


def runs_python(launch: Launch) -> bool:
    """True for a container that `as_process` has made."""
    return launch.command[:1] == (sys.executable,)


def directories() -> Iterator[str]:
    """What they need of this machine and a container would not see."""
    for directory in sorted({str(_ROOT), sys.prefix, sys.base_prefix}):
        if os.path.realpath(directory).startswith(tuple(f"{hidden}/" for hidden in _HIDDEN)):
            yield directory


def stand_ins(directory: Path, programs: Collection[str], source: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of a program in the place of each missing tool; `source` is the directory that lacks it."""
    directory.mkdir(exist_ok=True)
    for name, component in TOOLS.items():
        if name not in programs:
            path = directory / name
            text = f"{source} lacks {name}: put it there, e.g. with tiup install {component}"
            path.write_text(f"#!/bin/sh\necho {shlex.quote(text)} >&2\nexit 127\n", encoding="utf-8")
            path.chmod(0o755)
            yield name, path
