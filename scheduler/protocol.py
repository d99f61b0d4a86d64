"""The protocol between kube-scheduler and an extender (k8s.io/kube-scheduler/extender/v1; 2.3).

Keys are the Go names of the fields, in any case; objects inside are Kubernetes' usual JSON.
"""

from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from kube.objects import Object
from ports.structs import UNREADABLE, decoder

_T = TypeVar("_T")

_MOST_NODES = 20_000
"""The maximum number of nodes; Kubernetes supports 5,000. A hundred megabytes of tiny nodes would take gigabytes and
most of a minute.
"""

_LONGEST_NAMES = _MOST_NODES * 256
"""The maximum size of a list of names in bytes; a name has at most 253 characters."""

_NULL = msgspec.Raw(b"null")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


class BadQuestion(ValueError):
    """Raised if a request is not kube-scheduler's; the message names the wrong part."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the nodes for a pod. `nodes` has whole objects if kube-scheduler sends them, else
    their names.
    """

    pod: Object
    names: Sequence[str]
    nodes: Mapping[str, Object] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The remaining nodes, and the reason against each other one; `error` fails this attempt to schedule."""

    kept: Collection[str] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


class Victims(msgspec.Struct, frozen=True):
    """The pods (UIDs) to evict from a node, and the number of PodDisruptionBudgets that this would violate."""

    uids: tuple[str, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True)
class Preemption:
    """A question about the nodes on which evictions would make room for a pod."""

    pod: Object
    victims: Mapping[str, Victims]


def read_question(body: bytes | None) -> Question:
    """Decode ExtenderArgs. Raises BadQuestion."""
    given = _struct(body or b"", "the request")
    pod = _pod(given)
    whole = _value(given, "nodes", msgspec.Raw)
    if whole is not None:
        nodes = [_object(raw, "Node") for raw in _items(whole)]
        return Question(pod, [node.metadata.name for node in nodes], {node.metadata.name: node for node in nodes})
    if len(bytes(given.get("nodenames", _NULL))) > _LONGEST_NAMES:
        raise BadQuestion(f"nodenames: more than {_LONGEST_NAMES} bytes")
    names = _value(given, "nodenames", list[str]) or []
    _require_few("nodenames", names)
    return Question(pod, names)


def write_answer(question: Question, answer: Answer) -> bytes:
    """Encode ExtenderFilterResult, with whole nodes if the question had whole nodes."""
    left = frozenset(answer.kept)
    kept = [name for name in question.names if name in left]
    whole = question.nodes
    nodes = None if whole is None else {"items": [msgspec.Raw(whole[name].raw) for name in kept]}
    result = {
        "Nodes": nodes,
        "NodeNames": None if whole is not None else kept,
        "FailedNodes": dict(answer.refused),
        "FailedAndUnresolvableNodes": {},
        "Error": answer.error,
    }
    return msgspec.json.encode(result)


def read_preemption(body: bytes | None) -> Preemption:
    """Decode ExtenderPreemptionArgs, with whole pods or UIDs. Raises BadQuestion."""
    given = _struct(body or b"", "the request")
    whole = _value(given, "nodenametovictims", dict[str, msgspec.Raw])
    named = _value(given, "nodenametometavictims", dict[str, msgspec.Raw])
    _require_few("victims", whole or named or {})
    victims = {node: _victims(raw) for node, raw in (whole or named or {}).items()}
    return Preemption(_pod(given), victims)


def write_preemption(victims: Mapping[str, Victims]) -> bytes:
    """Encode ExtenderPreemptionResult."""
    nodes = {
        node: {"Pods": [{"UID": uid} for uid in each.uids], "NumPDBViolations": each.violations}
        for node, each in victims.items()
    }
    return msgspec.json.encode({"NodeNameToMetaVictims": nodes})


def write_priorities(names: Sequence[str]) -> bytes:
    """Encode HostPriorityList with equal priorities."""
    return msgspec.json.encode([{"Host": name, "Score": 0} for name in names])


def write_error(code: int, message: str) -> bytes:
    """The body of an error."""
    return msgspec.json.encode({"Code": code, "Message": message})


def _pod(given: Mapping[str, msgspec.Raw]) -> Object:
    if "pod" not in given:
        raise BadQuestion("Pod is missing")
    return _object(bytes(given["pod"]), "Pod")


def _object(raw: bytes, kind: str) -> Object:
    try:
        return Object(raw, "v1", kind)
    except msgspec.DecodeError as error:
        raise BadQuestion(f"{kind}: {error}") from error


def _items(nodes: msgspec.Raw) -> list[bytes]:
    items = _value(_struct(nodes, "Nodes"), "items", list[msgspec.Raw]) or []
    _require_few("Nodes", items)
    return [bytes(item) for item in items]


def _require_few(what: str, found: Sized) -> None:
    if len(found) > _MOST_NODES:
        raise BadQuestion(f"{what}: {len(found)} nodes, more than {_MOST_NODES}")


def _victims(raw: msgspec.Raw) -> Victims:
    given = _struct(raw, "victims")
    pods = [_struct(pod, "a victim") for pod in _value(given, "pods", list[msgspec.Raw]) or ()]
    return Victims(tuple(_uid(pod) for pod in pods), _value(given, "numpdbviolations", int) or 0)


def _uid(pod: Mapping[str, msgspec.Raw]) -> str:
    if "metadata" in pod:
        return _uid(_struct(pod["metadata"], "the metadata of a victim"))
    return _value(pod, "uid", str) or ""


def _struct(raw: bytes | msgspec.Raw, what: str) -> dict[str, msgspec.Raw]:
    """The fields by lower-case name; Go matches names in any case."""
    try:
        return {name.lower(): value for name, value in _fields.decode(raw).items()}
    except UNREADABLE as error:
        raise BadQuestion(f"{what}: {error}") from error


def _value(given: Mapping[str, msgspec.Raw], name: str, kind: type[_T]) -> _T | None:
    """A field; null counts as absent."""
    if bytes(given.get(name, _NULL)) == b"null":
        return None
    try:
        return decoder(kind).decode(given[name])
    except UNREADABLE as error:
        raise BadQuestion(f"{name}: {error}") from error
