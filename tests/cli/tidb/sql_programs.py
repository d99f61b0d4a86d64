"""kubectl and SQL clients for tests of `kubectl tidb sql`: programs that record how they were started."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kube.objects import Json
from tests.e2e.plugins import IN_PYTHON

_COMMON = f"""\
{IN_PYTHON}
import json, os, pathlib, re, signal, socket, sys, threading, time
HERE = pathlib.Path(__file__).parent
NAME = pathlib.Path(__file__).name
def record(**more):
    facts = dict(argv=sys.argv[1:], environ=dict(os.environ), pid=os.getpid(), session=os.getsid(0), **more)
    (HERE / (NAME + ".json")).write_text(json.dumps(facts))
"""

_KUBECTL = """\
record()
if (HERE / "refusal").exists():
    sys.exit((HERE / "refusal").read_text())
target = json.loads((HERE / "target").read_text())
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
print(f"Forwarding from 127.0.0.1:{port} -> 4000", flush=True)

def copy(source, sink):
    while piece := source.recv(65536):
        sink.sendall(piece)
    sink.shutdown(socket.SHUT_WR)

while True:
    inner, _ = listener.accept()
    print(f"Handling connection for {port}", flush=True)
    if (HERE / "loss").exists():
        sys.exit((HERE / "loss").read_text())
    if target:
        outer = socket.create_connection(target)
        for pair in ((inner, outer), (outer, inner)):
            threading.Thread(target=copy, args=pair, daemon=True).start()
"""
"""kubectl whose port leads to the file `target`: host and port, or null for a server that says nothing."""

_CLIENT = """\
if "--version" in sys.argv:
    sys.exit(print((HERE / (NAME + ".version")).read_text()))
flags = dict(each.partition("=")[::2] for each in sys.argv[1:])
file = pathlib.Path(flags.get("--defaults-file") or flags.get("--password-file") or "/none/none")
place = pathlib.Path(os.environ["MYSQL_TEST_LOGIN_FILE"]).parent
names = [each for each in flags if each in ("--ssl-ca", "--ssl-cert", "--ssl-key")]
files = {each: pathlib.Path(flags[each]).read_text() for each in names}
modes = [each.stat().st_mode for each in (place, *place.iterdir())]
facts = dict(options=file.read_text() if file.exists() else None, files=files, modes=modes, place=str(place))
record(**facts)
asked = (HERE / "signal").read_text() if (HERE / "signal").exists() else ""
if asked:
    os.kill(os.getppid(), getattr(signal, asked))
if asked in ("SIGTERM", "SIGHUP"):
    time.sleep(60)
with socket.create_connection((flags["--host"], int(flags["--port"]))) as connection:
    deadline = time.monotonic() + 30
    while file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    record(**facts, kept=file.exists())
if (HERE / "loss").exists():
    while time.monotonic() < deadline:
        try:
            os.kill(json.loads((HERE / "kubectl.json").read_text())["pid"], 0)
            state = pathlib.Path("/proc/%d/stat" % json.loads((HERE / "kubectl.json").read_text())["pid"]).read_text()
            if state.rpartition(")")[2].split()[0] == "Z":
                break
        except (OSError, FileNotFoundError):
            break
        time.sleep(0.01)
code = int((HERE / "code").read_text())
sys.exit(code) if code >= 0 else os.kill(os.getpid(), -code)
"""
"""A client that reads its options, connects, and waits until they are removed. It ends with the code in `code`."""

MYSQL = "mysql  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)"
MARIADB = "mariadb from 11.4.2-MariaDB, client 15.2 for debian-linux-gnu (x86_64)"


@dataclass(frozen=True, slots=True)
class Programs:
    """A directory on PATH."""

    place: Path

    def install(self, name: str, version: str = MYSQL) -> None:
        """Install a client."""
        self._write(name, _CLIENT)
        self.set(f"{name}.version", version)
        self.set("code", "0")

    def install_kubectl(self, host: str = "", port: int = 0) -> None:
        """Install kubectl, whose tunnels lead to a server."""
        self._write("kubectl", _KUBECTL)
        self.set("target", msgspec.json.encode([host, port] if host else None).decode())

    def set(self, name: str, text: str) -> None:
        """Write a file that a program reads."""
        (self.place / name).write_text(text)

    def started(self, name: str) -> Json:
        """How a program was started: `argv`, `environ`, `pid`, `session`; of clients, what they read."""
        recorded: Json = msgspec.json.decode((self.place / f"{name}.json").read_bytes())
        return recorded

    def _write(self, name: str, body: str) -> None:
        path = self.place / name
        path.write_text(_COMMON + body)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def is_running(pid: int) -> bool:
    """True if there is a process of that id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
