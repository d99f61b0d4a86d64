"""`backup-manager` in the pods of the sandbox: the real code, in front of the simulated cluster.

`backup_storage` provides the files; the tools that it runs are the sandbox's.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from backup_manager.child_process import CannotStart, OnLine
from backup_manager.commands import job
from backup_manager.database import DatabaseError, Login
from backup_manager.flags import PROGRAM
from backup_manager.main import exit_code
from backup_manager.outside import VOLUME, Outside
from kube.client import Client
from kube.retrying import RetryingTransport
from kube.throttle import Rate, Throttle
from ports.sql import SqlLogin, SqlRefused
from ports.stopping import Stop
from ports.transport import TransportError
from rehearsal.backup_storage import files_for, storage_at
from sandbox.dataplane.br.compaction import BASE64IFY, base64ified, run_compaction
from sandbox.dataplane.br.program import run_br
from sandbox.dataplane.br.request import Request
from sandbox.dataplane.br.run import Files
from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.dump_tools import run_dumpling, run_lightning
from sandbox.dataplane.processes import Disk
from sandbox.dataplane.tables import Rows
from sandbox.dataplane.tls import Certificate


def backup_manager(surroundings: Surroundings) -> int:
    """Run the command of a pod and return its exit code."""
    transport = RetryingTransport(
        surroundings.kubernetes, surroundings.clock, Throttle(Rate(), surroundings.clock), Stop()
    )
    arguments = surroundings.launch.command
    outside = Outside(
        client=Client(transport, user_agent=PROGRAM),
        clock=surroundings.clock,
        launcher=_Launcher(surroundings),
        open_storage=lambda location, environ, bulk: storage_at(surroundings, location, environ, bulk=bulk),
        connect=lambda login: _Tidb(surroundings, login),
        environ=surroundings.launch.env,
        stop=surroundings.stop,
    )
    if not {"export", "import"} & {*arguments[:1]}:
        return exit_code(lambda: job(arguments)(outside), outside.environ, surroundings.say)
    with _volume(surroundings) as volume:
        on_volume = replace(outside, volume=volume)
        return exit_code(lambda: job(arguments)(on_volume), outside.environ, surroundings.say)


class _Launcher:
    """Runs the sandbox's tools in the same container. Implements `Launcher`."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, stop: Stop) -> int:  # noqa: ARG002
        """Run a tool. `kubectl logs` shows its output."""
        program, *arguments = command
        surroundings = self._surroundings

        def say(line: str, is_error_stream: bool = False) -> None:
            surroundings.say(line)
            on_line(line, is_error_stream)

        def files(request: Request) -> Files:
            return files_for(request, surroundings, environ)

        match program.rpartition("/")[2]:
            case "br" if tuple(arguments[:2]) == BASE64IFY:
                say(base64ified(arguments))
                return 0
            case "br":
                return run_br(arguments, surroundings, files, say)
            case "tikv-ctl":
                return run_compaction(arguments, surroundings, files, lambda line: say(line, True))
            case "dumpling":
                return run_dumpling(arguments, environ, surroundings, say)
            case "tidb-lightning":
                return run_lightning(arguments, surroundings, say)
        raise CannotStart(f"cannot start {program}: the sandbox has BR, tikv-ctl, Dumpling and TiDB Lightning")


@contextmanager
def _volume(surroundings: Surroundings) -> Iterator[Path]:
    """The volume of exports and imports as a directory on this machine, while a pod uses it."""
    disk, _ = surroundings.launch.on_disk(str(VOLUME)) or (Disk(""), "")
    with TemporaryDirectory(prefix="volume-") as made:
        directory = Path(made)
        for name, content in disk.objects.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
        try:
            yield directory
        finally:
            there = (path for path in directory.rglob("*") if path.is_file())
            disk.objects = {str(path.relative_to(directory)): path.read_bytes() for path in there}


class _Tidb:
    """A TiDB of the sandbox. Implements `Database`."""

    def __init__(self, surroundings: Surroundings, login: Login) -> None:
        self._surroundings = surroundings
        self._login = login

    def ping(self) -> None:
        self._ask([])

    def variable(self, name: str) -> str:
        _, *rows = self._ask([f"SELECT variable_value FROM mysql.tidb WHERE variable_name = '{name}'"])[0]  # noqa: S608
        if not rows:
            raise DatabaseError(f"{self._login}: mysql.tidb has no {name}")
        return rows[0][0]

    def set_variable(self, name: str, value: str) -> None:
        self._ask([f"UPDATE mysql.tidb SET variable_value = '{value}' WHERE variable_name = '{name}'"])  # noqa: S608

    def _ask(self, statements: Sequence[str]) -> list[Rows]:
        login = SqlLogin(self._login.host, self._login.port, self._login.user)
        password, tls = self._login.password, self._tls()
        try:
            return self._surroundings.reach(lambda: self._surroundings.sql.ask(login, statements, password, tls))
        except (SqlRefused, TransportError) as error:
            raise DatabaseError(f"{self._login}: {error}") from error

    def _tls(self) -> Certificate | None:
        directory = self._login.tls
        if directory is None:
            return None
        ca, cert, key = (self._surroundings.launch.file(f"{directory}/{each}") or "" for each in _TLS_FILES)
        return Certificate(ca if self._login.verifies else "", cert, key, verifies=self._login.verifies)


_TLS_FILES = ("ca.crt", "tls.crt", "tls.key")
