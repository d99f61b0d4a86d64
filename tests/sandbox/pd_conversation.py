"""Questions to a PD of three members, from before its first store until it has lost its quorum (dataplane-apis.md 3).

The answers of real servers are recorded (`tests.sandbox.record_pd`); each test compares the sandbox's answers.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

MEMBERS = 3

NO_ANSWER = 0
"""The status of a request without an answer in time."""

Answer = tuple[int, str]


class PD(Protocol):
    """A PD, real or simulated, and its machines."""

    def ask(self, member: int, method: str, path: str, body: object = None) -> Answer:
        """Status and text of a member's answer."""

    def name(self, member: int) -> str:
        """A member's name in PD."""

    def add_store(self) -> int:
        """Register one more store; return its id once it is Up."""

    def restart(self, member: int) -> None:
        """End a member's process and start it again, on the same disk."""

    def kill(self, member: int) -> None:
        """End a member's process permanently."""

    def pause(self, seconds: float) -> None:
        """Let time pass."""

    def wait(self, condition: Callable[[], bool]) -> None:
        """Let time pass until a condition holds."""


@dataclass(slots=True)
class _Conversation:
    pd: PD
    members: dict[str, str] = field(default_factory=dict)
    stores: dict[str, str] = field(default_factory=dict)
    """Placeholders for names and ids, which differ between runs."""

    def leader(self) -> int:
        status, text = self.pd.ask(0, "GET", "/pd/api/v1/leader")
        found = json.loads(text).get("name", "") if status == 200 else ""
        return next((each for each in range(MEMBERS) if self.pd.name(each) == found), -1)

    def add_store(self) -> str:
        """The placeholder of a new store."""
        stands = f"<store {len(self.stores)}>"
        self.stores[stands] = str(self.pd.add_store())
        return stands

    def called(self, stands: str, member: int) -> str:
        """Register a placeholder for a member."""
        self.members[stands] = self.pd.name(member)
        return stands

    def ask(self, who: str, member: int, method: str, path: str, body: object = None) -> tuple[str, Any]:
        asked = json.dumps(body)
        status, text = self.pd.ask(member, method, self._real(path), json.loads(self._real(asked)))
        said = f" {asked}" if body is not None else ""
        return f"{who}: {method} {path}{said}", {"status": status, "says": self._said(text) if status else None}

    def text(self, member: int, path: str) -> str:
        """The text of the answer to a read."""
        return self.pd.ask(member, "GET", self._real(path))[1]

    def _real(self, text: str) -> str:
        for stands, store in self.stores.items():
            text = text.replace(f'"{stands}"', store).replace(stands, store)
        for stands, name in self.members.items():
            text = text.replace(stands, name)
        return text

    def _plain(self, text: str) -> str:
        for stands, name in self.members.items():
            text = text.replace(name, stands)
        for stands, store in self.stores.items():
            text = re.sub(rf"\bstore (id )?{store}\b", rf"store \g<1>{stands}", text)
        return text

    def _said(self, text: str) -> Any:
        """A text as it is; of any other value only the types by key, because values depend on PD and time."""
        try:
            tree = json.loads(text)
        except ValueError:
            return self._plain(text.strip())
        return self._plain(tree) if isinstance(tree, str) else self._shape(tree, "")

    def _shape(self, tree: Any, key: str) -> Any:
        match tree:
            case dict():
                ids = {store: stands for stands, store in self.stores.items()} if key == "store-id-ranges" else {}
                return {ids.get(below, below): self._shape(value, below) for below, value in sorted(tree.items())}
            case list():
                return [self._shape(each, key) for each in tree[:1]]
        return tree if key in _TELLING or tree is None else type(tree).__name__


_TELLING = ("state_name", "state", "node_state", "region_loaded", "marked", "batch")
"""Keys whose values are compared as well."""

_V1 = "/pd/api/v1"
_EVICT = "evict-leader-scheduler"
_SCHEDULERS = f"{_V1}/schedulers"
_EVICTED = f"{_V1}/scheduler-config/{_EVICT}/list"
_READS = (
    "members",
    "health",
    "leader",
    "cluster",
    "config/replicate",
    "config/rules",
    "config/rules/group/tiflash",
    "admin/cluster/markers/snapshot-recovering",
    "store/1",
    "schedulers",
    "nowhere",
)
_EVERY_STORE = f"{_V1}/stores?state=0&state=1&state=2"


def conversation(pd: PD) -> Iterator[tuple[str, Any]]:
    """Questions and the reproducible part of their answers."""
    had = _Conversation(pd)
    yield from _before_the_first_store(had)
    stores = [had.add_store() for _ in range(3)]
    yield from _of_stores(had, stores[0])
    yield from _of_schedulers(had, stores)
    had.add_store()
    yield from _of_a_store_that_leaves(had, stores[1])
    yield from _of_members(had)


def _before_the_first_store(had: _Conversation) -> Iterator[tuple[str, Any]]:
    leader = had.leader()
    follower = (leader + 1) % MEMBERS
    for who, member in (("leader", leader), ("follower", follower)):
        yield had.ask(f"no store, {who}", member, "GET", "/pd/api/v2/ready")
    reads = [f"{_V1}/{each}" for each in _READS]
    for path in (*reads, _EVERY_STORE, "/pd/api/v2/ms/members/tso", "/health"):
        yield had.ask("no store", follower, "GET", path)
    for method, path, body in (
        ("DELETE", f"{_V1}/store/1", None),
        ("POST", f"{_V1}/store/1/state?state=Up", None),
        ("POST", f"{_V1}/store/1/label", {"host": "a"}),
        ("POST", _SCHEDULERS, {"name": _EVICT, "store_id": 1}),
        ("POST", f"{_V1}/leader/transfer/nobody", None),
        ("POST", f"{_V1}/leader/transfer/{had.called('<leader>', leader)}", None),
        ("DELETE", f"{_V1}/members/name/nobody", None),
        ("DELETE", f"{_V1}/members/id/77", None),
        ("POST", f"{_V1}/config/replicate", {"enable-placement-rules": "true"}),
    ):
        yield had.ask("no store", follower, method, path, body)


def _of_stores(had: _Conversation, first: str) -> Iterator[tuple[str, Any]]:
    leader = had.leader()
    had.pd.wait(lambda: had.pd.ask(leader, "GET", "/pd/api/v2/ready")[0] != 500)
    # a store serves after PD's next check
    had.pd.wait(lambda: '"node_state"' in had.text(leader, f"{_V1}/store/{first}"))
    yield had.ask("three stores, leader", leader, "GET", "/pd/api/v2/ready")
    paths = (_EVERY_STORE, f"{_V1}/stores?state=2", f"{_V1}/store/{first}", f"{_V1}/store/99999", f"{_V1}/config/rules")
    for path in (*paths, f"{_V1}/config/rules/group/tiflash"):
        yield had.ask("three stores", leader, "GET", path)
    for method, path, body in (
        ("DELETE", f"{_V1}/store/99999", None),
        ("DELETE", f"{_V1}/store/{first}", None),
        ("POST", f"{_V1}/store/{first}/state?state=Up", None),
        ("POST", f"{_V1}/store/{first}/state?state=Bogus", None),
        ("POST", f"{_V1}/store/99999/state?state=Up", None),
        ("POST", f"{_V1}/store/{first}/label", {"host": "a", "zone": "z"}),
        ("POST", f"{_V1}/store/99999/label", {"host": "a"}),
        ("DELETE", f"{_V1}/stores/remove-tombstone", None),
    ):
        yield had.ask("three stores", leader, method, path, body)


def _of_schedulers(had: _Conversation, stores: list[str]) -> Iterator[tuple[str, Any]]:
    leader, (first, second, third) = had.leader(), stores
    # a new leader starts its schedulers once the regions have reported
    had.pd.wait(lambda: "balance-leader-scheduler" in had.text(leader, _SCHEDULERS))
    yield had.ask("nothing evicted", leader, "GET", _EVICTED)
    for method, path, body in (
        ("DELETE", f"{_SCHEDULERS}/{_EVICT}-{first}", None),
        ("DELETE", f"{_SCHEDULERS}/{_EVICT}", None),
        ("POST", _SCHEDULERS, {"name": _EVICT}),
        ("POST", _SCHEDULERS, {"name": _EVICT, "store_id": 99999}),
        ("POST", _SCHEDULERS, {"name": _EVICT, "store_id": first}),
        ("POST", _SCHEDULERS, {"name": _EVICT, "store_id": first}),
        ("POST", _SCHEDULERS, {"name": _EVICT, "store_id": second}),
        ("GET", _EVICTED, None),
        ("DELETE", f"{_SCHEDULERS}/{_EVICT}-{third}", None),
        ("DELETE", f"{_SCHEDULERS}/{_EVICT}-{first}", None),
        ("GET", _EVICTED, None),
        ("DELETE", f"{_SCHEDULERS}/{_EVICT}-{second}", None),
        ("GET", _EVICTED, None),
    ):
        yield had.ask("evictions", leader, method, path, body)


def _of_a_store_that_leaves(had: _Conversation, store: str) -> Iterator[tuple[str, Any]]:
    leader = had.leader()
    for method, path in (
        ("DELETE", f"{_V1}/store/{store}"),
        ("DELETE", f"{_V1}/store/{store}"),
        ("POST", f"{_V1}/store/{store}/state?state=Up"),
        ("GET", f"{_V1}/store/{store}"),
        ("DELETE", f"{_V1}/store/{store}"),
    ):
        yield had.ask("four stores", leader, method, path)
    one = f"{_V1}/store/{store}"
    had.pd.wait(lambda: '"Tombstone"' in had.text(leader, one))
    for method, path, body in (
        ("GET", one, None),
        ("DELETE", one, None),
        ("POST", f"{one}/state?state=Up", None),
        ("GET", f"{_V1}/stores?state=2", None),
    ):
        yield had.ask("a tombstone", leader, method, path, body)


def _of_members(had: _Conversation) -> Iterator[tuple[str, Any]]:
    # etcd removes no member while another has been connected for less than five seconds
    had.pd.pause(8.0)
    leader = had.leader()
    gone, other = (each for each in range(MEMBERS) if each != leader)
    yield had.ask("three members", leader, "DELETE", f"{_V1}/members/name/{had.called('<follower>', gone)}")
    had.pd.pause(10.0)
    for path in ("/health", f"{_V1}/members", "/pd/api/v2/ready"):
        yield had.ask("a removed member", gone, "GET", path)
    had.pd.restart(gone)
    had.pd.pause(10.0)
    for path in ("/health", f"{_V1}/members"):
        yield had.ask("a removed member that was restarted", gone, "GET", path)
    yield had.ask("two members", leader, "GET", f"{_V1}/health")
    had.pd.kill(other)
    had.pd.pause(15.0)
    for path in (f"{_V1}/leader", f"{_V1}/health", _EVERY_STORE, "/health"):
        yield had.ask("no quorum", leader, "GET", path)
    yield had.ask("no quorum", leader, "POST", f"{_V1}/leader/resign")


def transcript(pd: PD) -> dict[str, Any]:
    """The whole conversation by question; repeated questions are numbered."""
    found: dict[str, Any] = {}
    for question, answer in conversation(pd):
        asked = question
        number = 1
        while asked in found:
            number += 1
            asked = f"{question} ({number})"
        found[asked] = answer
    return found
