"""Doubles of Dumpling and TiDB Lightning on a volume, without a database."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from backup_manager.child_process import OnLine
from backup_manager.exports import VARIABLE
from ports.stopping import Stop

METADATA = """Started dump at: 2026-01-01 00:00:00
SHOW MASTER STATUS:
\tLog: tidb-binlog
\tPos: 449000000000
\tGTID:

Finished dump at: 2026-01-01 00:00:01
"""
FILES = {"metadata": METADATA, "shop.orders.sql": "INSERT", "shop-schema-create.sql": "CREATE"}


class Tools:
    """Dumpling writes three files, `metadata` last; Lightning records its input."""

    def __init__(self, *, reads_variable: bool = True) -> None:
        self.commands: list[Sequence[str]] = []
        self.environs: list[Mapping[str, str]] = []
        self.imported: list[dict[str, str]] = []
        self.configs: list[str] = []
        self.code = 0
        self.files = dict(FILES)
        self._help = f"-p, --password string  User password ({VARIABLE})" if reads_variable else "-p, --password string"

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, _stop: Stop) -> int:
        if "--help" in command:
            on_line(self._help, False)
            return 0
        self.commands.append(command)
        self.environs.append(environ)
        if command[0].endswith("dumpling"):
            self._dump(Path(_value(command, "--output")))
        else:
            self._load(command)
        if self.code:
            on_line("cannot go on", True)
        return self.code

    def _dump(self, directory: Path) -> None:
        for name in sorted(self.files, key=lambda name: name == "metadata"):
            self.wrote(directory / name, self.files[name])

    def wrote(self, path: Path, content: str) -> None:
        path.write_text(content, encoding="utf-8")

    def _load(self, command: Sequence[str]) -> None:
        self.configs.append(Path(_value(command, "--config")).read_text(encoding="utf-8"))
        source = Path(_value(command, "--d"))
        self.imported.append({path.name: path.read_text() for path in sorted(source.iterdir())})


def _value(command: Sequence[str], name: str) -> str:
    return next(word for word in command if word.startswith(f"{name}=")).partition("=")[2]
