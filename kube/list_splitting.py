"""The split of a list into items while it arrives (informers-workqueue.md TH-5, TH-6).

    {"kind":"PodList","metadata":{…},"items":[{"metadata":…},{"metadata":…},{"meta
    └────────────── head ───────────────────┘└── complete items ──┘ └─ pending ─┘

A list of 10,000 pods is one answer of 90 MB, which the server takes a second to write. Split as it arrives, it costs
neither the memory of the body nor, on a second core, time after the last byte.

The place of a cut is a guess: at `},` and the bytes with which the first item begins, up to its first field that is not
text. The guess is then verified: the part before the cut must be a JSON array of complete values. After a wrong guess
the next one waits until twice as much has arrived, so that a list costs only a few passes over its bytes. A list on
which all guesses fail, e.g. one with blanks, is split when it is complete.
"""

import re

import msgspec

from ports.structs import UNREADABLE


class ListMeta(msgspec.Struct, rename="camel"):
    """The metadata of a list."""

    resource_version: str | None = None
    continue_: str | None = msgspec.field(name="continue", default=None)


class RawList(msgspec.Struct, rename="camel"):
    """A list, or the rest of one, with items as bytes; UNSET if the field is missing, so that the answer is
    not a list.
    """

    kind: str
    metadata: ListMeta
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


_ITEMS = b'"items":['
_HEAD = 1 << 16
"""The bytes within which the items must begin for a list to be split early."""
_GUESSES = 3
"""The maximum number of wrong guesses per round. A guess is wrong for an object nested in an item that begins like one,
which rarely happens several times in a row.
"""

_START = re.compile(rb'\{(?:"[^"\\]*":"[^"\\]*",)*"[^"\\]*":[^"]')
_START_LENGTH = 1024
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]', re.DOTALL)

_lists = msgspec.json.Decoder(RawList)
_arrays = msgspec.json.Decoder(list[msgspec.Raw])


class ListSplitter:
    """Takes one JSON list in pieces and returns its items as soon as they are complete."""

    def __init__(self) -> None:
        self._head = b""
        self._separator: bytes | None = None
        """The text between two items; empty if it cannot be guessed, None until enough has arrived."""
        self._pending = bytearray()
        self._searched = 0
        """The number of bytes in `_pending` that need not be searched again for the separator."""
        self._enough = 0
        """The number of pending bytes before the next guess."""

    @property
    def pending(self) -> int:
        """The number of bytes received but not returned yet."""
        return len(self._pending)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next piece of the list; return the items that it completes."""
        self._pending += chunk
        if self._separator is None:
            self._learn()
        if not self._separator or len(self._pending) < self._enough:
            return []
        items = self._guess(self._separator)
        # a rejected separator is in the middle of an item, and stays so
        self._searched = len(self._pending)
        self._enough = 0 if items else 2 * self._searched
        return items

    def end(self) -> RawList:
        """The list without the items that were returned before.

        Raises msgspec.DecodeError or UnicodeDecodeError if it is not a list.
        """
        body = self._head + self._pending
        try:
            return _lists.decode(body)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, RecursionError):
            return _split_slowly(body)

    def _learn(self) -> None:
        """Find out where the items begin, and the separator between them."""
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
        """Take out all items before the last separator that really separates two items."""
        end = len(self._pending)
        for _ in range(_GUESSES):
            end = self._pending.rfind(separator, max(0, self._searched - len(separator)), end)
            if end < 0:
                break
            if items := self._complete(end + 1):
                return items
        return []

    def _complete(self, end: int) -> list[bytes]:
        """Take out the items before `end`; none if `end` is in the middle of one."""
        try:
            # bytes() copies each item, so that the received pieces can be freed
            items = [bytes(raw) for raw in _arrays.decode(b"[" + self._pending[:end] + b"]")]
        except (msgspec.DecodeError, RecursionError):
            return []
        del self._pending[: end + 1]
        return items


def _is_head(head: bytes) -> bool:
    """True if the items of the list itself begin after `head`, not the items of a nested list."""
    try:
        return isinstance(msgspec.json.decode(head + b"]}"), dict)
    except UNREADABLE:
        return False


def _split_slowly(body: bytes) -> RawList:
    """Split a list that the decoder rejects because an item is nested too deeply or contains half a surrogate.

    Raises msgspec.DecodeError if it is not a list.
    """
    start, end, items = _items(body)
    try:
        rest = _lists.decode(body[:start] + b"[]" + body[end:])
    except RecursionError as error:
        raise msgspec.DecodeError("a list nested too deeply outside of its items") from error
    return msgspec.structs.replace(rest, items=items)


def _items(body: bytes) -> tuple[int, int, list[msgspec.Raw]]:
    """The start and end of the array of items, and the items. Raises msgspec.DecodeError if there is none."""
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
