"""The project's programs on a PATH, as an installation puts them there."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.e2e.operators import ROOT

IN_PYTHON = f"""#!/bin/sh
'''exec' {shlex.quote(sys.executable)} "$0" "$@"
' '''
"""
"""The first lines of a program in Python. A `#!` cannot name an interpreter whose path has blanks; this runs in both
languages.
"""

_PROGRAMS = {
    "kubectl-tidb": ("cli.tidb.__main__", "main"),
    "kubectl_complete-tidb": ("cli.tidb.__main__", "complete"),
    "tidb-operator": ("cli.main", "main"),
}
"""The module and the function of each program."""


def install(directory: Path) -> Path:
    """Put them into a directory, which is returned."""
    directory.mkdir(exist_ok=True)
    for name, (module, function) in _PROGRAMS.items():
        program = directory / name
        start = f"import sys; from {module} import {function}; sys.exit({function}())"
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -c "{start}" "$@"\n'
        )
        program.chmod(0o755)
    return directory


def with_path(environ: Mapping[str, str], *directories: Path) -> dict[str, str]:
    """An environment in which programs of these directories are found first."""
    path = os.pathsep.join(map(str, directories))
    return {**environ, "PATH": f"{path}{os.pathsep}{environ.get('PATH', os.defpath)}"}
