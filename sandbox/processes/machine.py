"""The machine that runs containers as processes: their file systems, volumes and programs."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from ports.clock import Clock
from sandbox.cluster import Cluster
from sandbox.dataplane.network import Network
from sandbox.dataplane.output import Output
from sandbox.dataplane.processes import Exit, Launch
from sandbox.dataplane.program import Program
from sandbox.dataplane.runtime import repository
from sandbox.dataplane.script import is_script, script_of
from sandbox.dataplane.servers import SERVERS
from sandbox.processes import own_programs
from sandbox.processes.agent_client import GATEWAY, Agent, AgentError, Unavailable, check_tools
from sandbox.processes.api_endpoint import ENVIRONMENT, ApiEndpoint, Dial, Issue
from sandbox.processes.gateway import Gateway, Play
from sandbox.processes.keep import Keep
from sandbox.processes.process import RealProcess, Started

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CALLED = re.compile(
    r"(?:^|[|&;(!`]|\$\(|\b(?:if|while|until|then|do|else)\s)\s*(nslookup|dig|getent|wget|curl)\b", re.MULTILINE
)
_PACKAGES = {"nslookup": "bind9-dnsutils", "dig": "bind9-dnsutils", "getent": "libc-bin"}
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_NOT_FOUND = 127
_CANNOT_START = 128

# $1 is an empty directory for the container's root, $2 the directories above what is mounted, e.g. "|/etc|/usr|"; then
# come pairs of source and target, `--`, and the command. The root is the machine's own, so that programs find their
# libraries. Those directories have a layer above them, so that nothing outside changes. In a user namespace, the
# kernel refuses that for a directory with mounts below it, and the script rebuilds the directory from its entries.
_SETUP = """
set -e
base=$1
above=$2
shift 2
rebuild() {
    for entry in "$1"/* "$1"/.[!.]*; do
        if [ -L "$entry" ]; then
            cp -P "$entry" ".$entry"
        elif [ ! -e "$entry" ]; then
            continue
        elif [ ! -d "$entry" ]; then
            : >".$entry"
            mount --bind "$entry" ".$entry"
        else
            mkdir ".$entry"
            case $above in
            *"|$entry|"*) rebuild "$entry" ;;
            *) mount --rbind "$entry" ".$entry" ;;
            esac
        fi
    done
}
mount --make-rprivate /
mount -t tmpfs tmpfs "$base"
mkdir "$base/root" "$base/upper" "$base/work"
cd "$base/root"
for each in /*; do
    name=${each#/}
    if [ -L "$each" ]; then
        cp -P "$each" "$name"
    elif [ ! -d "$each" ]; then
        continue
    else
        mkdir "$name" "$base/upper/$name" "$base/work/$name"
        layers=lowerdir=$each,upperdir=$base/upper/$name,workdir=$base/work/$name
        case $name in
        proc) mount -t proc proc proc 2>/dev/null || mount --rbind /proc proc ;;
        run | tmp) ;;
        *)
            case $above in
            *"|$each|"*) mount -t overlay overlay -o "$layers" "$name" 2>/dev/null || rebuild "$each" ;;
            *) mount --rbind "$each" "$name" ;;
            esac
            ;;
        esac
    fi
done
while [ "$1" != -- ]; do
    [ ! -L ".$2" ] || rm ".$2"
    if [ -d "$1" ]; then
        mkdir -p ".$2"
    else
        mkdir -p ".${2%/*}"
        [ -e ".$2" ] || : >".$2"
    fi
    mount --bind "$1" ".$2"
    shift 2
done
shift
exec chroot . "$@"
"""


class Machine:
    """Starts the containers whose program is in a directory. Thread-safe."""

    def __init__(self, programs: Path, clock: Clock, *, keep: Keep | None = None, as_root: bool | None = None) -> None:
        """`programs` is a directory of TiDB's programs; see `program` for the containers that run them.

        Without `keep`, which it closes, volumes vanish at the end.

        Raises Unavailable.
        """
        self._clock = clock
        self._images = {
            server_program.image or server_program.name: server_program.command for server_program in SERVERS.values()
        }
        self.programs = _programs(programs)
        self._directory = programs.absolute()
        if not self.programs:
            raise Unavailable(f"{programs} contains no program, e.g. pd-server")
        check_tools()
        self._state = Path(tempfile.mkdtemp(prefix="tidb-sandbox-"))
        for name in ("volumes", "containers", "root"):
            (self._state / name).mkdir()
        self._tools = dict(own_programs.stand_ins(self._state / "tools", self.programs, self._directory))
        self.journal = keep
        self._volumes = keep.volumes if keep is not None else self._state / "volumes"
        try:
            self.agent = Agent(self._state, as_root=as_root, holds=keep.lock() if keep is not None else None)
        except Unavailable:
            shutil.rmtree(self._state)
            raise
        self._gateway: Gateway | None = None
        self._api: ApiEndpoint | None = None
        self._count = 0

    def program(self, image: str, command: Sequence[str], labels: Mapping[str, str]) -> str:
        """The file name of a container's real program; empty without one. `labels` are the pod's."""
        image = repository(image)
        if own_programs.is_real_discovery(command, labels, self.programs):
            return own_programs.DISCOVERY
        if name := own_programs.program(image, command):
            return name if own_programs.is_real(self.programs) else ""
        first = command[0].rpartition("/")[2] if command else ""
        if not is_script(command):
            return first if first in self.programs else ""
        server = self._images.get(image, image)
        return server if server in self.programs else ""

    def start(self, launch: Launch, output: Output) -> RealProcess | Program | None:
        """Start a container; None if its program is not here, an ended process if it cannot start."""
        name = self.program(launch.image, launch.command, launch.labels)
        if not name:
            return None
        if name in (own_programs.MANAGER, own_programs.DISCOVERY):
            launch = own_programs.as_process(name, launch)
        if missing := self._missing_tool(launch):
            package = _PACKAGES.get(missing, missing)
            where = f"install {package}, or put it beside the programs in {self._directory}"
            return _ended(Exit(_NOT_FOUND, f"the start script calls {missing}, which this machine lacks; {where}"))
        reading, writing = os.pipe()
        try:
            self._count += 1
            files = self._written(launch)
            container = f"{launch.pod_uid}/{self._count}"
            self.agent.ask("pod", pod=launch.pod_uid, address=launch.address, hostname=self._hostname(launch))
            self._provide(launch)
            self.agent.ask(
                "start",
                output=writing,
                pod=launch.pod_uid,
                container=container,
                setup=self._setup(launch, files),
                environment={"PATH": f"{_PATH}:{self._directory}", **ENVIRONMENT, **launch.env},
            )
        except (AgentError, OSError) as error:
            os.close(reading)
            return _ended(Exit(_CANNOT_START, f"can't start the container: {error}"))
        finally:
            os.close(writing)
        return RealProcess(self.agent, self._clock, launch, Started(container, output, reading, files))

    def lose_disk(self, uid: str) -> None:
        """Delete the data of a volume, as a fault."""
        path = self._volume(uid)
        for each in list(path.iterdir()) if path.is_dir() else ():
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()

    def forget(self, pod_uid: str, *, keeps_volumes: bool) -> None:
        """Take away the network of a pod whose containers have ended: its address answers no more.

        Its emptyDirs go, too, unless it `keeps_volumes`, because it starts again.
        """
        with suppress(AgentError):
            self.agent.ask("end_pod", pod=pod_uid)
        shutil.rmtree(self._containers(pod_uid), ignore_errors=True)
        if not keeps_volumes:
            for volume in self._volumes.glob(f"{quote(f'{pod_uid}/', safe='')}*"):
                shutil.rmtree(volume, ignore_errors=True)

    def gateway(self, cluster: Cluster, network: Network, play: Play, issue: Issue, dial: Dial) -> Gateway:
        """The actor that serves what the pods reach beside each other. Raises AgentError."""
        self._api = ApiEndpoint(self._clock, issue, dial)
        self._gateway = Gateway(self.agent, cluster, network, play, self._api, clock=self._clock)
        return self._gateway

    def close(self) -> None:
        """Kill all processes; the agent removes their volumes unless they are kept. Idempotent."""
        if self._gateway is not None:
            self._gateway.stop()
            self._gateway = None
        self.agent.close()
        if self.journal is not None:
            self.journal.close()

    def _provide(self, launch: Launch) -> None:
        """Make its volumes that do not exist yet. Raises OSError, AgentError."""
        for disk in launch.disks.values():
            volume = self._volume(disk.uid)
            volume.mkdir(parents=True, exist_ok=True)
            if disk.memory is not None:
                self.agent.ask("memory", pod=launch.pod_uid, path=str(volume), size=disk.memory)

    def _volume(self, uid: str) -> Path:
        return self._volumes / quote(uid, safe="")

    @staticmethod
    def _hostname(launch: Launch) -> str:
        return launch.env.get("HOSTNAME", launch.pod)

    def _containers(self, pod_uid: str) -> Path:
        return self._state / "containers" / quote(pod_uid, safe="")

    def _setup(self, launch: Launch, files: Mapping[str, Path]) -> list[str]:
        """The command that becomes the container. Raises OSError."""
        mounts = [path for source, target in self._mounts(launch, files) for path in (source, _within(target))]
        above = sorted({str(directory) for target in mounts[1::2] for directory in Path(target).parents[:-1]})
        of_root = (str(self._state / "root"), f"|{'|'.join(above)}|")
        return ["/bin/sh", "-c", _SETUP, "setup", *of_root, *mounts, "--", *launch.command]

    def _mounts(self, launch: Launch, files: Mapping[str, Path]) -> Iterable[tuple[str, str]]:
        """Pairs of a path outside and one in the container, outer directories first. Raises OSError."""
        yield str(self._directory), str(self._directory)
        for name, versions in self.programs.items():
            path = versions.get(launch.version) or list(versions.values())[-1]
            # TiFlash finds its libraries beside it
            yield (str(path.parent), f"/{name}") if name == "tiflash" else (str(path), f"/{name}")
        if own_programs.program(repository(launch.image), launch.command):
            yield from ((str(path), f"/{name}") for name, path in self._tools.items())
        if own_programs.runs_python(launch):
            yield from ((directory, directory) for directory in own_programs.directories())
        yield from ((str(self._volume(disk.uid)), mount.rstrip("/")) for mount, disk in sorted(launch.disks.items()))
        yield from ((str(file), path) for path, file in files.items())

    def _written(self, launch: Launch) -> dict[str, Path]:
        """The files outside of the texts that the container mounts, by path in it. Raises OSError."""
        own = self._containers(launch.pod_uid) / str(self._count)
        own.mkdir(parents=True)
        files = {}
        of_account = self._api.files(launch) if self._api is not None else {}
        texts = {**self._network_files(launch), **launch.files, **of_account}
        for number, (path, text) in enumerate(texts.items()):
            files[path] = own / str(number)
            files[path].write_text(text, encoding="utf-8")
            files[path].chmod(0o755)
        return files

    def _network_files(self, launch: Launch) -> dict[str, str]:
        domain = launch.domain
        search = f"{launch.namespace}.svc.{domain} svc.{domain} {domain}"
        return {
            "/etc/resolv.conf": f"nameserver {GATEWAY}\nsearch {search}\noptions ndots:5\n",
            "/etc/hosts": f"127.0.0.1\tlocalhost\n{launch.address}\t{self._hostname(launch)}\n",
            "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        }

    def _missing_tool(self, launch: Launch) -> str:
        """A program that the start script calls and that neither the machine nor the directory has."""
        text = _COMMENT.sub("", script_of(launch) or "")
        path = f"{os.environ.get('PATH', _PATH)}:{self._directory}"
        return next((tool for tool in _CALLED.findall(text) if shutil.which(tool, path=path) is None), "")


def _within(path: str) -> str:
    """A path without the machine's links above its last part: an absolute one would lead out of the container."""
    parent, _, name = path.rpartition("/")
    return os.path.join(os.path.realpath(parent or "/"), name)


def _ended(how: Exit) -> Program:
    program = Program(Launch("", "", "", "", ()), None)
    program.exit = how
    return program


def _programs(directory: Path) -> dict[str, dict[str, Path]]:
    """The executable files of a directory, and in the layout of TiUP, by name and version, the newest version last.

    Raises Unavailable.
    """
    if not directory.is_dir():
        raise Unavailable(f"{directory} is no directory")
    programs: dict[str, dict[str, Path]] = {}
    for pattern in ("*", "*/v*/*", "*/v*/*/*"):
        for path in sorted(filter(_is_program, directory.glob(pattern)), key=_version):
            programs.setdefault(path.name, {})[_version_text(path, directory)] = path.absolute()
    return programs


def _version_text(path: Path, directory: Path) -> str:
    """The directory of the version, e.g. `v8.5.2`; empty for a file that is in none."""
    parts = path.relative_to(directory).parts
    return parts[1].removeprefix("v") if len(parts) > 1 else ""


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _version(path: Path) -> tuple[int, ...]:
    named = next((part for part in path.parts[::-1] if re.match(r"v\d", part)), "")
    return tuple(map(int, re.findall(r"\d+", named)))
