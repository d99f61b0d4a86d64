"""Taking a list apart while it arrives (informers-workqueue.md TH-5, TH-6).

    {"kind":"PodList","metadata":{…},"items":[{"metadata":…},{"metadata":…},{"meta
    └────────────── head ───────────────────┘└── complete items ──┘ └─ pending ─┘

A list of 10,000 pods comes in one answer of 90 MB and takes the server a second to write. Split as it comes, it costs
neither the memory of the body nor, on a second core, time after the last byte.

Where items may be cut is a guess: at `},` and the bytes that the first item begins with, up to its first field that is
no text. Whether a guess is right is not: what is before the cut must be a JSON array of complete values. Guesses that
were wrong are made again when twice as much is there, so that no list costs more than a few passes over its bytes. One
that defies all guesses, such as one with blanks, is taken apart when it is complete.
"""

import re

import msgspec

from ports.structs import UNREADABLE


class ListMeta(msgspec.Struct, rename="camel"):
    """The metadata of a list."""

    resource_version: str | None = None
    continue_: str | None = msgspec.field(name="continue", default=None)


class RawList(msgspec.Struct, rename="camel"):
    """A list, or what is left of it, with its items as bytes; UNSET where it has no such field and so is no list."""

    kind: str
    metadata: ListMeta
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


_ITEMS = b'"items":['
_HEAD = 1 << 16
"""Bytes within which the items of a list begin, if it is one that can be split early."""
_GUESSES = 3
"""A wrong guess is an object nested in an item that begins as items do: rare, and then not many in a row."""

_START = re.compile(rb'\{(?:"[^"\\]*":"[^"\\]*",)*"[^"\\]*":[^"]')
_START_LENGTH = 1024
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]', re.DOTALL)

_lists = msgspec.json.Decoder(RawList)
_arrays = msgspec.json.Decoder(list[msgspec.Raw])


class ListSplitter:
    """Takes one JSON list in pieces and gives its items back as soon as they are complete."""

    def __init__(self) -> None:
        self._head = b""
        self._separator: bytes | None = None
        """What stands between two items; empty where that cannot be guessed, None as long as too little is there."""
        self._pending = bytearray()
        self._searched = 0
        """So many bytes of `_pending` hold no separator that is worth another look."""
        self._enough = 0
        """So many bytes must be pending before the next guess."""

    @property
    def pending(self) -> int:
        """The number of bytes received and not returned yet."""
        return len(self._pending)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next piece of the list; return the items that are complete now and were not returned before."""
        self._pending += chunk
        if self._separator is None:
            self._learn()
        if not self._separator or len(self._pending) < self._enough:
            return []
        items = self._guess(self._separator)
        # a separator that was no good once is in the middle of an item, and is so for ever
        self._searched = len(self._pending)
        self._enough = 0 if items else 2 * self._searched
        return items

    def end(self) -> RawList:
        """The list without the items that were returned already.

        Raises msgspec.DecodeError or UnicodeDecodeError when it is no list.
        """
        body = self._head + self._pending
        try:
            return _lists.decode(body)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, RecursionError):
            return _split_slowly(body)

    def _learn(self) -> None:
        """Find out where items begin, and how."""
        start = self._pending.find(_ITEMS, 0, _HEAD) + len(_ITEMS)
        if start < len(_ITEMS):
            self._separator = b"" if len(self._pending) > _HEAD else None
            return
        first = _START.match(self._pending, start, start + _START_LENGTH)
        if first is None:
            self._separator = b"" if len(self._pending) > start + _START_LENGTH else None
            return
        self._head = bytes(self._pending[:start])
        if not _is_head(self._head):
            self._head, self._separator = b"", b""
            return
        self._separator = b"}," + first[0]
        del self._pending[:start]

    def _guess(self, separator: bytes) -> list[bytes]:
        """Take out all items before the last separator that stands between two."""
        end = len(self._pending)
        for _ in range(_GUESSES):
            end = self._pending.rfind(separator, max(0, self._searched - len(separator)), end)
            if end < 0:
                break
            if items := self._complete(end + 1):
                return items
        return []

    def _complete(self, end: int) -> list[bytes]:
        """Take the items before `end` out, none when that is in the middle of one."""
        try:
            # bytes() copies each item, so that the pieces they came in are not kept
            items = [bytes(raw) for raw in _arrays.decode(b"[" + self._pending[:end] + b"]")]
        except (msgspec.DecodeError, RecursionError):
            return []
        del self._pending[: end + 1]
        return items


def _is_head(head: bytes) -> bool:
    """Whether what begins after `head` are the items of the list, and not those of some list within it."""
    try:
        return isinstance(msgspec.json.decode(head + b"]}"), dict)
    except UNREADABLE:
        return False


def _split_slowly(body: bytes) -> RawList:
    """Take a list apart that a decoder cannot read, as an item is nested too deeply or has half a surrogate in it.

    Raises msgspec.DecodeError when it is no list.
    """
    start, end, items = _items(body)
    try:
        rest = _lists.decode(body[:start] + b"[]" + body[end:])
    except RecursionError as error:
        raise msgspec.DecodeError("a list nested too deeply outside of its items") from error
    return msgspec.structs.replace(rest, items=items)


def _items(body: bytes) -> tuple[int, int, list[msgspec.Raw]]:
    """Where the array of items begins and ends, and the items. Raises msgspec.DecodeError when there is none."""
    depth, key, start, begin = 0, b"", -1, -1
    items: list[msgspec.Raw] = []
    for token in _TOKENS.finditer(body):
        text = token[0]
        if text in b"[{":
            depth += 1
            if depth == 2 and text == b"[" and key == b'"items"':
                start, begin = token.start(), token.end()
        elif depth == 1 and text[:1] == b'"':
            key = text
        elif depth == 2 and start >= 0 and text in b",]":
            if item := body[begin : token.start()].strip():
                items.append(msgspec.Raw(item))
            if text == b"]":
                return start, token.end(), items
            begin = token.end()
        depth -= text in b"]}"
    raise msgspec.DecodeError("no complete list: it lacks an array of items")
