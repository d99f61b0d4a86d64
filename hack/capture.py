"""`python hack/capture.py [DIRECTORY]`: draw the pictures of README.md, by default into docs.

- run.svg: what a terminal shows during the first steps
- plan.svg: the timeline of `tidb-operator plan -o html`, for another version of a sample
"""

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs"

_SHOWN = "make run EXIT_WHEN_READY=1"
_COMMAND = ("-m", "cli", "run", "--sandbox", "--cluster", "manifests/samples/basic.yaml", "--exit-when-ready")
_WIDTH = 118

_SAMPLE = ROOT / "manifests" / "samples" / "advanced.yaml"
_VERSIONS = ("version: v8.5.2", "version: v8.5.3")
_PLAN = ("-m", "cli", "plan", f"--from={_SAMPLE}", "--to=-", "--output=html")

_STYLES = {
    r"^\$ .*": "bold",
    r"(?<=ready   )\w+(?=: )": "yellow",
    r"(?<=ready   )(Done|Ready)(?=: )": "green",
    r"^Ready after .*": "bold green",
}
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Resources that rich would let the reader's browser load from elsewhere."""


def captured() -> str:
    """The output of the run. Raises CalledProcessError."""
    done = subprocess.run(  # noqa: S603  (our own command)
        [sys.executable, *_COMMAND], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout


def picture(said: str) -> str:
    """A terminal in which that was printed, as SVG; lines that are too long end in an ellipsis."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO())
    for line in (f"$ {_SHOWN}", *_first_cluster(said)):
        text = Text(line)
        for pattern, style in _STYLES.items():
            text.highlight_regex(pattern, style)
        console.print(text, no_wrap=True, overflow="ellipsis")
    drawn = console.export_svg(title="tidb-operator-py", unique_id="run")
    return _FONTS.sub("", drawn).replace("Fira Code", "monospace")


def _first_cluster(said: str) -> list[str]:
    """The lines up to the time that it took."""
    return said.partition("What to try next")[0].rstrip().splitlines()


def timeline() -> str:
    """The timeline of a plan, as SVG. Raises CalledProcessError."""
    changed = _SAMPLE.read_text(encoding="utf-8").replace(*_VERSIONS)
    done = subprocess.run(  # noqa: S603  (our own command)
        [sys.executable, *_PLAN], cwd=ROOT, input=changed, capture_output=True, text=True, check=True, timeout=120
    )
    end = "</svg>"
    return done.stdout[done.stdout.index("<svg ") : done.stdout.rindex(end)] + f"{end}\n"


def main(arguments: list[str]) -> None:
    """Draw into a directory."""
    place = Path(arguments[0]) if arguments else PICTURES
    (place / "run.svg").write_text(picture(captured()), encoding="utf-8")
    (place / "plan.svg").write_text(timeline(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
