"""Taking a list apart while it arrives (informers-workqueue.md TH-5, TH-6).

    {"kind":"PodList","metadata":{…},"items":[{"metadata":…},{"metadata":…},{"meta
    └────────────── head ───────────────────┘└── complete items ──┘ └─ pending ─┘

A list of 10,000 pods comes in one answer of 90 MB and takes the server a second to write. Split as it comes, it costs
neither the memory of the body nor, on a second core, time after the last byte.

Where items may be cut is a guess: at `},` and the characters every item begins with. Whether a guess is right is not:
what is before the cut must be a JSON array of complete values. A list that defies all guesses, such as one with blanks,
is taken apart when it is complete.
"""

import msgspec


class ListMeta(msgspec.Struct, rename="camel"):
    """The metadata of a list."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class RawList(msgspec.Struct, rename="camel"):
    """A list, or what is left of it, with its items as bytes."""

    kind: str
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


_ITEMS = b'"items":['
_GUESSES = 3
"""A wrong guess is an object nested in an item that begins as items do: rare, and then not many in a row."""

_lists = msgspec.json.Decoder(RawList)
_arrays = msgspec.json.Decoder(list[msgspec.Raw])


class ListSplitter:
    """Takes one JSON list in pieces and gives its items back as soon as they are complete."""

    def __init__(self) -> None:
        self._head = b""
        self._separator = b""
        self._pending = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next piece of the list; return the items that are complete now and were not returned before."""
        seen = len(self._pending)
        self._pending += chunk
        if not self._separator and not self._learn():
            return []
        end = len(self._pending)
        for _ in range(_GUESSES):
            # a separator that lies in what was searched before was no good then
            end = self._pending.rfind(self._separator, max(0, seen - len(self._separator)), end)
            if end < 0:
                break
            if items := self._complete(end + 1):
                return items
        return []

    def end(self) -> RawList:
        """The list without the items that were returned already. Raises msgspec.DecodeError when it is no list."""
        return _lists.decode(self._head + self._pending)

    def _learn(self) -> bool:
        """Find out where items begin, and how."""
        start = self._pending.find(_ITEMS)
        colon = self._pending.find(b":", start + len(_ITEMS)) if start >= 0 else -1
        if colon < 0:
            return False
        start += len(_ITEMS)
        self._head = bytes(self._pending[:start])
        self._separator = b"}," + bytes(self._pending[start : colon + 1])
        del self._pending[:start]
        return True

    def _complete(self, end: int) -> list[bytes]:
        """Take the items before `end` out, none when that is in the middle of one."""
        try:
            # bytes() copies each item, so that the pieces they came in are not kept
            items = [bytes(raw) for raw in _arrays.decode(b"[" + self._pending[:end] + b"]")]
        except msgspec.DecodeError:
            return []
        del self._pending[: end + 1]
        return items
