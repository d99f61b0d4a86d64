"""The data plane as an actor: selects the program for a container's command, and advances all processes."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Protocol

import msgspec
import structlog

from ports.clock import Clock
from ports.randomness import Randomness
from ports.transport import Credentials, Request, Response, Transport, TransportError
from sandbox.dataplane.commands import Command, CommandProcess
from sandbox.dataplane.container import Container
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.grpc import BackgroundTransport
from sandbox.dataplane.initializer import SCRIPT, initialize
from sandbox.dataplane.interconnect import Interconnect
from sandbox.dataplane.monitoring import says_ready
from sandbox.dataplane.mysql_client import MYSQL, mysql
from sandbox.dataplane.network import Directory, Network, Origin, Running, speaking
from sandbox.dataplane.output import Output
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.pd.process import PdProcess
from sandbox.dataplane.processes import Disk, Exit, Launch, Process
from sandbox.dataplane.program import Factory, Program, Task, tls_of_discovery
from sandbox.dataplane.script import ScriptProcess, is_script
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.servers import by_command
from sandbox.dataplane.sql import SqlNetwork
from sandbox.dataplane.tls import Certificate
from sandbox.dataplane.transport import DataPlaneTransport
from sandbox.notifier import Notifier
from sandbox.timings import Timings

_log = structlog.get_logger(__name__)

CHANGED: Hashable = "data plane"
"""The topic of changes of processes."""

ASKING: Hashable = "data plane questions"
"""The topic of processes with a question."""

_LOOPBACK = "127.0.0.1"
_NEVER = float("inf")

Identity = Callable[[str, str], Transport]
"""A service account's view of the Kubernetes API: namespace, name."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of the kubelet or of a tool in the container: a port, over TCP (`path` None) or HTTP."""

    port: int
    path: str | None = None
    scheme: str = "http"
    certificate: Certificate | None = None


class Machine(Protocol):
    """What runs containers as real processes (`sandbox.processes`)."""

    def start(self, launch: Launch, output: Output) -> Process | None:
        """Start a container; None if it is to be simulated."""

    def forget(self, pod_uid: str, *, keeps_volumes: bool) -> None:
        """Take away what remains of a pod whose containers have ended, with its volumes unless it `keeps_volumes`."""

    def lose_disk(self, uid: str) -> None:
        """Delete the data of a volume."""


class DataPlane:
    """All running programs of the world. Thread-safe."""

    name = "data-plane"
    watches = (CHANGED,)

    def __init__(
        self,
        *,
        clock: Clock,
        randomness: Randomness,
        timings: Timings,
        notifier: Notifier,
        directory: Directory,
        identity: Identity,
        programs: Mapping[str, Factory],
        servers: Iterable[ServerProgram] = (),
        commands: Mapping[str, Command] | None = None,
        pause: Callable[[float], None],
        interconnect: Interconnect | None = None,
        domain: str = "",
        machine: Machine | None = None,
    ) -> None:
        """`programs` are started by the path of their file; `servers` extend the built-in ones.

        `commands` are keyed by the name of their file, or of an image whose containers name no program.

        `interconnect` leads to the data planes of other Kubernetes; `domain` is this one's. `machine` runs containers
        as real processes; the others are simulated.
        """
        self._machine = machine
        self._clock = clock
        self._notifier = notifier
        self._identity = identity
        self._programs = programs
        self._servers = by_command(servers)
        self._commands = {MYSQL: mysql, SCRIPT: initialize, **(commands or {})}
        self._under_way: list[CommandProcess] = []
        self._domain = domain
        self._interconnect = interconnect = interconnect or Interconnect()
        self._lock = interconnect.lock
        self._processes: list[Running] = []
        self._disks: dict[str, Disk] = {}
        self.visible_changes = 0
        """Grows with each change of processes that the kubelet can observe."""
        self._disturbances = -1
        """The network's `disturbances` at the last step."""
        self.network = Network(clock, directory, randomness, interconnect, domain, pause=pause, wake=self._wake)
        self._deps = Dependencies(clock, randomness, timings, self.network)

    @property
    def clock(self) -> Clock:
        """The world's."""
        return self._clock

    @property
    def interrupted_joins(self) -> set[str]:
        """A fault; see `Dependencies`."""
        return self._deps.interrupted_joins

    @property
    def last_calls(self) -> dict[str, int]:
        """A fault; see `Dependencies`."""
        return self._deps.last_calls

    def disk(self, uid: str) -> Disk:
        """The volume with this identity; a new one is empty."""
        with self._lock:
            return self._disks.setdefault(uid, Disk(uid))

    def start(self, launch: Launch) -> Running:
        """Start a container's main process."""
        with self._lock:
            launch = self._prepared(launch)
            output = Output(self._clock)
            real = self._machine.start(launch, output) if self._machine else None
            running = Running(launch, real or self._make(launch, output), output)
            if not is_script(launch.command):
                self._say_begun(running)
            self._processes.append(running)
            self.network.attach(running)
        self.changed()
        return running

    def run_beside(self, running: Running, command: Sequence[str]) -> Running:
        """Run a hook in the container of a process, with time-outs as fast as the grace period that it races."""
        with self._lock:
            launch = replace(running.launch, command=tuple(command))
            patience = self._deps.timings.grace_second or 1.0
            beside = Running(launch, self._make(launch, running.output, patience), Output(self._clock))
            self._processes.append(beside)
        self.changed()
        return beside

    def stop(self, running: Running) -> None:
        """SIGTERM."""
        with self._lock:
            if running.process.exit is None:
                if not _prints(running.process):
                    running.output.note("INFO", "got signal to exit", signal="terminated")
                # a script that runs a program in the foreground does not forward the signal
                (running.behind or running.process).stop()
        self.changed()

    def kill(self, running: Running, code: int = 137) -> None:
        """SIGKILL."""
        with self._lock:
            running.behind = None
            if running.process.exit is None:
                running.process.kill(code)
            running.output.end()
            self.network.detach(running)
        self.changed()

    def forget(self, pod_uid: str, *, keeps_volumes: bool) -> None:
        """Take away what remains of a pod whose containers have been killed; see `Machine`."""
        if self._machine:
            self._machine.forget(pod_uid, keeps_volumes=keeps_volumes)

    def probe(self, running: Running, probe: Probe) -> bool:
        """True if a probe of the container succeeds."""
        with self._lock:
            if running.hung or running.process.exit is not None or not running.process.listens(probe.port):
                return False
            if probe.path is None:
                return True
            url = f"{probe.scheme}://{_LOOPBACK}:{probe.port}{probe.path}"
            prober = speaking(replace(Origin.of(running.launch), certificate=probe.certificate), url)
            if not running.is_real and self.network.tls_failure(prober, running.launch, probe.port, _LOOPBACK):
                return False
        answer = self.network.reach(running, probe.port, Request("GET", url), probe.certificate)
        return answer is not None and 200 <= answer.response.status < 400

    def running(self, namespace: str, pod: str) -> list[Running]:
        """The live processes of a pod."""
        with self._lock:
            launches = [each for each in self._processes if each.process.exit is None]
            return [each for each in launches if (each.launch.namespace, each.launch.pod) == (namespace, pod)]

    def pods(self, glob: str) -> list[tuple[str, str]]:
        """Namespace and name of the pods with live processes that match the glob, in order."""
        with self._lock:
            found = {
                (running.launch.namespace, running.launch.pod)
                for running in self._processes
                if running.process.exit is None and fnmatchcase(running.pod, glob)
            }
        return sorted(found)

    def pd_cluster(self, namespace: str, name: str) -> PdCluster | None:
        """The shared state of a cluster's running PD members, or None."""
        of = f"{namespace}/{name}"
        with self._lock:
            for running in self._processes:
                # most processes are no members: their labels need not be read
                if isinstance(running.process, PdProcess) and running.launch.cluster == of:
                    found = running.process.cluster
                    if found is not None:
                        return found
        return None

    def lose_disk(self, uid: str) -> None:
        """A fault: delete the data of a volume."""
        with self._lock:
            self._disks.pop(uid, None)
        if self._machine:
            self._machine.lose_disk(uid)

    def crash(self, namespace: str, pod: str) -> None:
        """A fault: end the pod's processes with exit code 1."""
        for running in self.running(namespace, pod):
            self.kill(running, 1)

    def hang(self, namespace: str, pod: str, hung: bool = True) -> None:
        """A fault: suspend the pod's processes, which then answer no request, or resume them."""
        for running in self.running(namespace, pod):
            running.hung = hung
            if suspend := getattr(running.process, "suspend", None):
                suspend(hung)
        self._interconnect.disturbed()

    def transport(self, origin: Origin | None = None) -> DataPlaneTransport:
        """The network, for a pod or from outside."""
        return DataPlaneTransport(self.network, self._here(origin))

    def sql(self, origin: Origin | None = None) -> SqlNetwork:
        """SQL to the world's servers, for a pod or from outside."""
        return SqlNetwork(self.network, self._here(origin), self.changed)

    def grpc_transport(self, origin: Origin | None = None) -> BackgroundTransport:
        """The network for requests whose answers arrive later."""
        return BackgroundTransport(self.network, self._here(origin), self._clock)

    def _here(self, origin: Origin | None) -> Origin:
        return replace(origin or Origin(), domain=self._domain)

    def changed(self) -> None:
        """Wake the data plane and its dependants, including other Kubernetes."""
        self._interconnect.changed()

    def _wake(self) -> None:
        self._notifier.notify(CHANGED)

    def step(self) -> float | None:
        """Advance every process; return when to run again."""
        with self._lock:
            disturbances = self.network.disturbances
            awake = self._awake(disturbances)
            before = _visible(awake)
            for running in awake:
                if not running.hung:
                    self._advance(running)
            self._disturbances = disturbances
            arrival = self.network.arrive()
            due = min((each.due for each in self._processes if not each.hung), default=_NEVER)
            asks = any(each.process.question() is not None for each in awake if not each.hung)
        if asks:
            self._notifier.notify(ASKING)
        with self._lock:
            for running in [each for each in awake if each.process.exit is not None]:
                self._say_ended(running)
                self.network.detach(running)
                self._processes.remove(running)
            left = [each for each in awake if each.process.exit is None]
            is_changed = _visible(left) != before
        if is_changed:
            self.visible_changes += 1
            self.changed()
        first = due if arrival is None else min(due, arrival)
        return None if first == _NEVER else first

    def _awake(self, disturbances: int) -> list[Running]:
        """The processes that a step may change: all if the network was disturbed since the last step."""
        if disturbances != self._disturbances:
            return list(self._processes)
        now = self._clock.now()
        return [running for running in self._processes if running.rests_until <= now or running.process.woken]

    def _advance(self, running: Running) -> None:
        """Step a process and record when to step it again."""
        due = self._step(running)
        running.due = _NEVER if due is None else due
        running.rests_until = running.process.rests_until()

    def _step(self, running: Running) -> float | None:
        """Advance a process; a program that a script runs takes its place, for good or until it has ended."""
        script = running.process
        # from now on, waking the script triggers another step
        script.woken = False
        due = script.step()
        if isinstance(script, ScriptProcess | CommandProcess) and script.printed:
            running.output.say("".join(script.printed))
            script.printed.clear()
        self._say_listening(running)
        if isinstance(script, ScriptProcess) and script.exit is None and script.runs is not None:
            told = replace(running.launch, command=script.runs.arguments, env=dict(script.runs.environment))
            running.launch = self._prepared(told)
            running.behind = None if script.runs.replaces else script
            running.process = self._program(running.launch)
            self._say_begun(running)
            return self._step(running)
        if running.behind is not None and script.exit is not None:
            running.process, running.behind = running.behind, None
            running.process.ended(script.exit.code)
            return self._step(running)
        return due

    def _say_begun(self, running: Running) -> None:
        if _prints(running.process):
            return
        launch = running.launch
        name = launch.command[0].rpartition("/")[2] if launch.command else launch.image
        running.output.note("INFO", f"Welcome to {name}, simulated", version=launch.version)
        running.output.note("INFO", "command line", arguments=msgspec.json.encode(launch.command).decode())

    def _say_listening(self, running: Running) -> None:
        if len(running.announced) == len(running.launch.ports) or _prints(running.process):
            return
        heard = frozenset(port for port in running.launch.ports if running.process.listens(port))
        for port in sorted(heard - running.announced):
            running.output.note("INFO", "listening", port=port)
        running.announced = heard

    def _say_ended(self, running: Running) -> None:
        how = running.process.exit
        if how is not None and not running.output.ended and not _prints(running.process):
            level = "FATAL" if how.code else "INFO"
            running.output.note(level, how.message.replace('"', "'") or "exit", code=how.code)
        running.output.end()

    def commands(self) -> list[CommandProcess]:
        """The running commands that do not hang; a killed one must still be unwound."""
        if not self._under_way:
            return []
        with self._lock:
            hung = {id(running.process) for running in self._processes if running.hung}
            return [command for command in self._under_way if id(command) not in hung]

    def command_ended(self, process: CommandProcess) -> None:
        """Remove a command whose code runs no more."""
        with self._lock:
            self._under_way.remove(process)

    def end_commands(self) -> None:
        """End the threads of all commands."""
        for process in self.commands():
            process.kill()
            process.go_on()
            self.command_ended(process)

    def questions(self) -> list[tuple[Running, Request]]:
        """The processes with a question to the network, and the questions."""
        with self._lock:
            # only scripts use questions
            scripts = [each for each in self._processes if isinstance(each.process, ScriptProcess) and not each.hung]
            asking = [(running, running.process.question()) for running in scripts]
        return [(running, question) for running, question in asking if question is not None]

    def answer(self, running: Running, response: Response | None) -> None:
        """Pass a process the answer to its question; None means that there was none."""
        with self._lock:
            running.process.answered(response)
        self.changed()

    def _make(self, launch: Launch, log: Output, patience: float = 1.0) -> Process:
        if not is_script(launch.command):
            return self._program(launch)
        second = self._deps.timings.script_second
        known = any(repository(launch.image) == (server.image or server.name) for server in self._servers.values())
        container = Container(
            launch,
            self.network,
            self._deps.randomness,
            has_program=lambda name: not known or self._has_program(name),
            help_of=self._help,
            uptime=lambda: self._clock.now() / (second or 1.0),
            says=log.say,
        )
        return ScriptProcess(launch, container, self._clock, second, patience)

    def _has_program(self, name: str) -> bool:
        own = name.rpartition("/")[2]
        return own in self._servers or own in self._commands or name in self._programs

    def _prepared(self, launch: Launch) -> Launch:
        """A launch with its program's TLS."""
        name = launch.command[0] if launch.command else ""
        server = self._servers.get(name.rpartition("/")[2])
        tls = server.tls(launch) if server else tls_of_discovery(launch)
        return replace(launch, tls=tls, domain=self._domain)

    def _help(self, name: str) -> str:
        server = self._servers.get(name.rpartition("/")[2])
        return server.help if server else ""

    def _program(self, launch: Launch) -> Process:
        name = launch.command[0] if launch.command else ""
        server = self._servers.get(name.rpartition("/")[2])
        command = next(filter(None, map(self._commands.get, _names(launch))), None)
        if server is None and command is not None:
            return self._make_command(launch, command)
        if server is None:
            return self._make_program(launch, self._programs.get(name))
        if refused := server.refusal(launch):
            program = Program(launch, None)
            program.exit = Exit(1, refused)
            return program
        return server.start(launch, self._deps)

    def _make_command(self, launch: Launch, command: Command) -> CommandProcess:
        identity = self._identity(launch.namespace, launch.service_account)
        process = CommandProcess(
            launch, command, self._deps, kubernetes=identity, sql=self.sql(Origin.of(launch)), disk=self.disk
        )
        self._under_way.append(process)
        return process

    def _make_program(self, launch: Launch, factory: Factory | None) -> Process:
        if factory is None:
            return Task(self._clock, self._deps.timings.task) if launch.is_task else Program(launch, says_ready(launch))
        identity = self._identity(launch.namespace, launch.service_account)

        def network(tls: Credentials | None) -> Transport:
            certificate = Certificate.of(tls) if tls else None
            return self.transport(Origin(launch.namespace, launch.pod, certificate))

        try:
            return Program(launch, factory(launch.env, identity, network, self._clock))
        except Exception as error:
            # a program that cannot start is a crashing container
            program = Program(launch, None)
            program.exit = Exit(1, f"{type(error).__name__}: {error}")
            return program


class Questions:
    """Sends the processes' questions: a separate actor, so that a slow answer delays no other."""

    name = "data-plane-questions"
    watches = (ASKING,)

    def __init__(self, data_plane: DataPlane) -> None:
        self._data_plane = data_plane

    def step(self) -> float | None:
        """Send the current questions, one after another."""
        for running, question in self._data_plane.questions():
            self._data_plane.answer(running, self._ask(running, question))
        return None

    def _ask(self, running: Running, question: Request) -> Response | None:
        origin = replace(Origin.of(running.launch), certificate=_certificate(running.process))
        try:
            return self._data_plane.network.deliver(replace(question, client=running.launch.address), origin)
        except TransportError as error:
            _log.debug("no answer", pod=running.pod, error=str(error))
            return None


class Commands:
    """Resumes commands: a separate actor, because commands call any other."""

    name = "data-plane-commands"
    watches = (CHANGED,)

    def __init__(self, data_plane: DataPlane) -> None:
        self._data_plane = data_plane

    def step(self) -> float | None:
        """Resume each command that is due; return when the next one is."""
        clock = self._data_plane.clock
        due = [
            command for command in self._data_plane.commands() if command.exit is not None or command.due <= clock.now()
        ]
        for process in due:
            process.go_on()
            if process.exit is not None:
                self._data_plane.command_ended(process)
        if due:
            self._data_plane.changed()
        return min((command.due for command in self._data_plane.commands()), default=None)


def _visible(processes: Iterable[Running]) -> list[tuple[int, bool, bool]]:
    """The facts about processes that the kubelet can observe."""
    return [
        (id(running), running.process.exit is None, any(map(running.process.listens, running.launch.ports)))
        for running in processes
    ]


def _prints(process: Process) -> bool:
    """True if a process prints its own messages."""
    return isinstance(process, CommandProcess) or bool(getattr(process, "prints", False))


def _names(launch: Launch) -> list[str]:
    """The names of a command: its file, the script that Python runs, the image."""
    words = [word.rpartition("/")[2] for word in launch.command]
    script = words[1:2] if words and words[0].startswith("python") else []
    return [*words[:1], *script, repository(launch.image)]


def repository(image: str) -> str:
    """The name of an image, without registry and tag."""
    return image.rpartition("/")[2].partition(":")[0].partition("@")[0]


def _certificate(process: Process) -> Certificate | None:
    """The certificate of requests by a tool in a script."""
    return process.certificate if isinstance(process, ScriptProcess) else None
