"""`python -m tests.style.sample [SEED]`: print a sample of the repository's prose for a reader to grade.

It has 60 docstrings, comments and test names, and 60 sentences of documents. The seed is the hash of the commit unless
one is given, so that a sample can be drawn again.
"""

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tests.style.texts import ROOT, Text, all_texts

SIZE = 60
SHORTEST = 4
"""Words of a text that can be graded."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*])")


def main(arguments: Sequence[str]) -> int:
    """Print the sample and return 0."""
    seed = arguments[0] if arguments else _commit()
    texts = all_texts()
    code = [(path, text) for path, found in texts.items() if path.endswith(".py") for text in found]
    documents = [
        (path, sentence)
        for path, found in texts.items()
        if path.startswith("docs/")
        for text in found
        for sentence in _sentences(text)
    ]
    sys.stdout.write(f"seed {seed}\n")
    for title, population in (("docstrings, comments, test names", code), ("sentences of documents", documents)):
        gradable = [each for each in population if len(each[1].text.split()) >= SHORTEST]
        drawn = sorted(gradable, key=lambda each: _draw(seed, *each))[:SIZE]
        sys.stdout.write(f"\n## {SIZE} of {len(gradable)} {title}\n\n")
        for number, (path, text) in enumerate(drawn, 1):
            sys.stdout.write(f"{number:2} {path}:{text.line} [{text.kind}] {' '.join(text.text.split())}\n")
    return 0


def _sentences(text: Text) -> Iterator[Text]:
    return (text._replace(text=each) for each in _SENTENCE.split(text.text))


def _draw(seed: str, path: str, text: Text) -> str:
    """The place of a text in the draw."""
    return hashlib.sha256(f"{seed} {path} {text}".encode()).hexdigest()


def _commit() -> str:
    head = ["git", "rev-parse", "HEAD"]
    return subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
