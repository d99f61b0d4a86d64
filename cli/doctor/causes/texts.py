"""Causes that only foreign messages distinguish, each by a pattern. Their wording varies between versions."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cli.doctor.facts import Facts
from cli.doctor.finding import Cause, Sign
from kube.objects import Json


@dataclass(frozen=True, slots=True)
class Message:
    """A message about an object, and the object whose field would change it."""

    tree: Json
    object: str
    text: str


Speech = Callable[[Facts], Iterable[Message]]
"""All messages of one kind."""


@dataclass(frozen=True, slots=True)
class Text:
    """A cause recognised by a message.

    `sign` turns a match into a sign; by default the message itself is shown.
    """

    reason: str
    pattern: str
    way_out: str
    sign: Callable[[Facts, Message, re.Match[str]], Sign] = lambda _, message, __: Sign(message.object, message.text)


def causes(speech: Speech, texts: Sequence[Text], other: Text | None = None) -> tuple[Cause, ...]:
    """The causes of a kind of message; `other` covers messages without a known pattern."""
    found = [Cause(text.reason, text.way_out, _signs(speech, text)) for text in texts]
    if other is not None:
        known = "|".join(text.pattern for text in (*texts, other) if text.pattern)
        found.append(Cause(other.reason, other.way_out, _others(speech, other, known)))
    return tuple(found)


def _signs(speech: Speech, text: Text) -> Callable[[Facts], Iterable[Sign]]:
    def signs(facts: Facts) -> Iterable[Sign]:
        for message in speech(facts):
            if match := re.search(text.pattern, message.text):
                yield text.sign(facts, message, match)

    return signs


def _others(speech: Speech, other: Text, known: str) -> Callable[[Facts], Iterable[Sign]]:
    """`known` are the patterns that other causes cover."""

    def signs(facts: Facts) -> Iterable[Sign]:
        for message in speech(facts):
            if whole := re.fullmatch(rf"(?s)(?!.*(?:{known})).*", message.text):
                yield other.sign(facts, message, whole)

    return signs
