"""`backup-manager` in the pods of Jobs: this project's own program as a process, with the tools of the directory.

In place of a tool that the directory lacks, its pods find a program that says so and fails: `backup-manager` writes
that into the conditions of the object, as it does with every failure of a tool.
"""

import os
import re
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from sandbox.dataplane.processes import Launch
from sandbox.dataplane.script import is_script

NAME = "backup-manager"
TOOLS = {"br": "br", "tikv-ctl": "ctl", "dumpling": "dumpling", "tidb-lightning": "tidb-lightning"}
"""What init containers copy out of images, or its own image contains, with TiUP's components."""
IMAGES = ("tidb-operator-py-backup-manager", "tidb-backup-manager")
"""The names of its image: this project's, and v1.6's, which users may name."""

_COPIES = re.compile(r"cp /(\S+) /")
_ROOT = Path(__file__).parents[2]
"""The directory that contains this project's packages."""
_HIDDEN = ("/run", "/tmp")  # noqa: S108
"""Directories of the machine that containers do not see."""


def is_real(programs: Collection[str]) -> bool:
    """True if its pods run as processes: there is a tool, or a PD that the simulated BR would not understand."""
    return not {"pd-server", *TOOLS}.isdisjoint(programs)


def program(image: str, command: Sequence[str]) -> str:
    """What a container of its pods runs: NAME by the name of its image, or the tool that an init container copies.

    Empty for any other container.
    """
    if not is_script(command):
        return NAME if image in IMAGES else ""
    copied = _COPIES.match(command[-1])
    return copied[1] if copied is not None and copied[1] in TOOLS else ""


def as_process(launch: Launch) -> Launch:
    """A container of its image with the command line of a process, and with variables by which Python finds it."""
    command = (sys.executable, "-m", "backup_manager", *launch.command)
    return replace(launch, command=command, env={"PYTHONPATH": str(_ROOT), **launch.env})


def directories() -> Iterator[str]:
    """What it needs of this machine and a container would not see."""
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
