"""Records a real PD's answers: `python -m tests.sandbox.record_pd PD_SERVER VERSION STORES` (hack/pd).

PD_SERVER is a pd-server built from source, because no registry has one; STORES is the program in hack/pd, which plays
TiKV: `cd hack/pd && go build -o STORES .`. The members are at 127.0.1.1 to 127.0.1.3.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.sandbox.pd_conversation import MEMBERS, NO_ANSWER, Answer, transcript

RECORDINGS = Path(__file__).parent / "recorded_pd"
_STORES = "127.0.0.1:19999"
_TIMEOUT = 5.0
_PATIENCE = 300.0


class RealPD:
    """Three processes on this machine, and one that plays TiKV."""

    def __init__(self, server: str, version: str, stores: str, directory: Path) -> None:
        """Start the members in sequence."""
        self._server, self._version, self._directory = server, version, directory
        self._members: dict[int, subprocess.Popen[bytes]] = {}
        self._added = 0
        for member in range(MEMBERS):
            self.restart(member)
            self.wait(partial(self._serves, member))
        urls = ",".join(_url(each) for each in range(MEMBERS))
        self._tikv = subprocess.Popen([stores, _STORES, urls])
        self.pause(2.0)

    def ask(self, member: int, method: str, path: str, body: object = None) -> Answer:
        return _answer(f"{_url(member)}{path}", method, body)

    def name(self, member: int) -> str:
        return f"pd-{member}"

    def add_store(self) -> int:
        self._added += 1
        status, text = _answer(f"http://{_STORES}/add?address=tikv-{self._added}:20160&version={self._version}", "GET")
        if status != 200:
            raise RuntimeError(text)
        self.wait(lambda: '"Up"' in self.ask(0, "GET", f"/pd/api/v1/store/{text.strip()}")[1])
        return int(text)

    def restart(self, member: int) -> None:
        if member in self._members:
            self.kill(member)
        data = self._directory / f"pd-{member}"
        first = [f"--initial-cluster=pd-0={_peer(0)}"] if member == 0 else [f"--join={_url(0)}"]
        options = [f"--name=pd-{member}", f"--data-dir={data}", f"--log-file={data}.log"]
        options += [f"--client-urls={_url(member)}", f"--peer-urls={_peer(member)}"]
        command = [self._server, *options, *(first if not data.exists() else [])]
        self._members[member] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self, member: int) -> None:
        self._members[member].kill()
        self._members[member].wait()

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: TID251  (a real server has its own clock)

    def wait(self, condition: Callable[[], bool]) -> None:
        """See `PD`. Raises TimeoutError."""
        for _ in range(int(_PATIENCE / 0.5)):
            if condition():
                return
            self.pause(0.5)
        raise TimeoutError("PD does not do what is waited for")

    def stop(self) -> None:
        """End all processes."""
        for process in (*self._members.values(), self._tikv):
            process.kill()
            process.wait()

    def _serves(self, member: int) -> bool:
        if self._members[member].poll() is not None:
            # etcd adds a member only after the previous one has been connected for a while
            self.restart(member)
        return self.ask(member, "GET", "/pd/api/v1/leader")[0] == 200


def _url(member: int) -> str:
    return f"http://127.0.1.{member + 1}:12379"


def _peer(member: int) -> str:
    return f"http://127.0.1.{member + 1}:12380"


def _answer(url: str, method: str, body: object = None) -> Answer:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, method=method), timeout=_TIMEOUT) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return NO_ANSWER, ""


def main(server: str, version: str, stores: str) -> None:
    """Record one version."""
    with tempfile.TemporaryDirectory() as directory:
        pd = RealPD(server, version, stores, Path(directory))
        try:
            found = transcript(pd)
        finally:
            pd.stop()
    RECORDINGS.mkdir(exist_ok=True)
    text = json.dumps(found, indent=1, sort_keys=True)
    (RECORDINGS / f"v{version}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
