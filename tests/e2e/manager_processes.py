"""`backup-manager` as in the pod of a Job: a process that our kubelet starts and ends.

It asks the API server as the kubeconfig in KUBECONFIG_OF_PODS says, and object storage, over sockets. What the init
container would have brought, BR, is a program that passes its arguments on to the sandbox's BR, over a socket as well.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from backup_manager.storage.objects import open_storage
from rehearsal.backup_storage import StorageFiles, location
from sandbox.dataplane.br.program import run_br
from sandbox.dataplane.commands import Surroundings
from tests.e2e.plugins import IN_PYTHON

PROCESS_IMAGE = "backup-manager-process"
"""The image whose containers are run so."""

KUBECONFIG = "KUBECONFIG_OF_PODS"
"""The variable of a container with the path of a kubeconfig (`spec.env`)."""

_ROOT = Path(__file__).parents[2]
_LOOK_EVERY = 0.05

_BR = f"""{IN_PYTHON}
import json, os, socket, sys

with socket.create_connection(("127.0.0.1", PORT)) as connection:
    stream = connection.makefile("rw")
    stream.write(json.dumps(sys.argv[1:]) + "\\n")
    stream.flush()
    for line in stream:
        if line.startswith("exit "):
            sys.exit(int(line.split()[1]))
        print(line, end="", flush=True)
sys.exit(137)
"""

_COMMAND = """
import sys
from backup_manager import br, main

br.BR = sys.argv.pop(1)
sys.exit(main.main())
"""


def run_as_process(surroundings: Surroundings) -> int:
    """The command of a container: the process, and BR for it."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server.setblocking(False)
        br = directory / "br"
        br.write_text(_BR.replace("PORT", str(server.getsockname()[1])))
        br.chmod(0o755)
        environ = dict(surroundings.launch.env)
        arguments = [*surroundings.launch.command, f"--kubeconfig={environ[KUBECONFIG]}"]
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", _COMMAND, str(br), *arguments],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_ROOT), **environ},
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            while process.poll() is None:
                _serve_br(server, surroundings)
                if surroundings.stop.wait(surroundings.clock, _LOOK_EVERY):
                    process.terminate()
            return process.returncode
        finally:
            # the container ends with its first process
            process.kill()
            process.wait()
            for line in (directory / "log").read_text().splitlines():
                surroundings.say(line)


def _serve_br(server: socket.socket, surroundings: Surroundings) -> None:
    """Run BR if it was called."""
    try:
        connection, _ = server.accept()
    except BlockingIOError:
        return
    connection.setblocking(True)
    with connection, connection.makefile("rw") as stream, contextlib.suppress(BrokenPipeError):

        def say(line: str) -> None:
            stream.write(f"{line}\n")
            stream.flush()

        code = run_br(
            json.loads(stream.readline()),
            surroundings,
            lambda request: StorageFiles(open_storage(location(request), surroundings.launch.env)),
            say,
        )
        say(f"exit {code}")
