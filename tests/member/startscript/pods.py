"""A pod to run start scripts in: a directory for its file system, and stand-ins for what its image has.

The scripts are run as they are, except that their absolute paths lead into the directory.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SHELLS = ["dash", "bash"]

_STAND_IN = """\
#!/bin/sh
echo "$*" >>"$POD_ROOT/calls/{name}"
count=$(wc -l <"$POD_ROOT/calls/{name}")
answer=$POD_ROOT/answers/{name}.$((count))
[ -f "$answer" ] || answer=$POD_ROOT/answers/{name}.last
[ -f "$answer" ] || exit 0
tail -n +2 "$answer"
exit "$(head -n 1 "$answer")"
"""

_SERVER = """\
#!/bin/sh
printf '%s\\n' "$0" "$@" >"$POD_ROOT/argv"
"""

_IMAGE = ["nslookup", "dig", "getent", "wget", "curl", "sleep", "hostname"]


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a script: its exit code, its output, and the server's command line, if it started one."""

    code: int
    output: str
    argv: list[str] | None


@dataclass
class Pod:
    """A pod named `demo-<component>-0` of the cluster `demo` in the namespace `ns`."""

    root: Path
    shell: str
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for directory in ("bin", "calls", "answers", "etc/podinfo", "var/lib"):
            (self.root / directory).mkdir(parents=True)
        (self.root / "tiflash").mkdir()
        for server in ("pd-server", "tikv-server", "tidb-server", "tiflash/tiflash", "pump", "cdc"):
            self._executable(self.root / server, _SERVER)
        for name in _IMAGE:
            self._executable(self.root / "bin" / name, _STAND_IN.format(name=name))
        self.write("etc/podinfo/annotations", 'prometheus.io/scrape="true"\nweird="$(exit 7)"')

    def write(self, path: str, text: str) -> None:
        """Put a file into the pod."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def answers(self, program: str, *answers: tuple[int, str]) -> None:
        """The output and exit code of `program`, call by call; the last answer repeats."""
        for number, (code, text) in enumerate(answers, start=1):
            self.write(f"answers/{program}.{number}", f"{code}\n{text}")
        self.write(f"answers/{program}.last", f"{answers[-1][0]}\n{answers[-1][1]}")

    def replaces(self, program: str, script: str) -> None:
        """Put another stand-in."""
        self._executable(self.root / "bin" / program, script)

    def calls(self, program: str) -> list[str]:
        """The arguments of each call of a stand-in."""
        file = self.root / "calls" / program
        return file.read_text().splitlines() if file.exists() else []

    def run(self, script: str) -> Run:
        """Run a script to its end, which is due within seconds."""
        executable = shutil.which(self.shell)
        if executable is None:
            pytest.skip(f"there is no {self.shell} here")
        file = self.root / "script.sh"
        file.write_text(self._inside(script))
        env = {"PATH": f"{self.root}/bin:/usr/bin:/bin", "POD_ROOT": str(self.root)} | self.env
        done = subprocess.run([executable, file], env=env, capture_output=True, text=True, timeout=20, check=False)
        return Run(done.returncode, self._outside(done.stdout + done.stderr), self._argv())

    def _inside(self, script: str) -> str:
        for path in ("/etc/podinfo", "/var/lib/pd", "/var/lib/tikv"):
            script = script.replace(path, f"{self.root}{path}")
        for path in ("/etc/tiflash", "/data0"):
            script = script.replace(f'"{path}', f'"{self.root}{path}')
        script = script.replace("/bin/tiproxy", f"{self.root}/bin/tiproxy")
        script = script.replace("\n/pump ", f"\n{self.root}/pump ")
        return script.replace("exec /", f"exec {self.root}/") if f"exec {self.root}/" not in script else script

    def _outside(self, text: str) -> str:
        return text.replace(str(self.root), "")

    def _argv(self) -> list[str] | None:
        file = self.root / "argv"
        return self._outside(file.read_text()).splitlines() if file.exists() else None

    @staticmethod
    def _executable(file: Path, text: str) -> None:
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)


def environment(component: str) -> Mapping[str, str]:
    """The pod environment from a component's StatefulSet (objects.md 4.1, 4.3, 4.4)."""
    common = {"HOSTNAME": f"demo-{component}-0", "NAMESPACE": "ns"}
    peer = f"demo-{component}-peer"
    if component == "pd":
        return common | {"PEER_SERVICE_NAME": peer, "SERVICE_NAME": "demo-pd", "SET_NAME": "demo-pd"}
    if component == "pump":
        return {"HOSTNAME": "demo-pump-0"}
    more = common | {"CLUSTER_NAME": "demo", "HEADLESS_SERVICE_NAME": peer}
    if component in {"tiproxy", "ticdc"}:
        return common | {"POD_NAME": f"demo-{component}-0", "HEADLESS_SERVICE_NAME": peer}
    if component == "tikv":
        return more | {"CAPACITY": "10GB"}
    return more | {"POD_NAME": "demo-tidb-0", "BINLOG_ENABLED": "false", "SLOW_LOG_FILE": "/var/log/tidb/slowlog"}


def pod_of(component: str, root: Path, shell: str) -> Pod:
    """A pod of a component."""
    return Pod(Path(os.path.realpath(root)) / "pod", shell, dict(environment(component)))
