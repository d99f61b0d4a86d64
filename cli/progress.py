"""The progress of a cluster or Job for newcomers: the stage and reason of each component as they change.

On a terminal a table that redraws in place, elsewhere one line per change.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from apis.accessor import components
from apis.cluster import Cluster
from apis.shared import ComponentStatus
from cli.terminal import Printable
from kube.objects import condition_of
from member.components import workload_names

_NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class Row:
    """One component at one moment."""

    component: str
    ready: int
    wanted: int
    state: str

    def __str__(self) -> str:
        """The line for a pipe or file."""
        return f"{self.component:<9} {self.ready}/{self.wanted} ready   {self.state}"


def rows(tc: Cluster) -> list[Row]:
    """A cluster as rows: one for each managed component in its spec, the last for the whole."""
    return [*_components(tc), _cluster(tc)]


def _components(tc: Cluster) -> Iterator[Row]:
    managed = workload_names(tc.kind)
    for component in components(tc):
        if component.name in managed:
            yield _row(component.name, component.type.status(tc.status), component.workload.replicas)


def _row(component: str, status: ComponentStatus | None, wanted: int) -> Row:
    if status is None:
        return Row(component, 0, wanted, _NOT_STARTED)
    condition = condition_of(status.conditions, "Progressing")
    state = f"{condition['reason']}: {condition['message']}" if condition else _NOT_STARTED
    return Row(component, status.ready_replicas, wanted, state)


def _cluster(tc: Cluster) -> Row:
    condition = next((c for c in tc.status.conditions if c.type == "Ready"), None)
    state = f"{condition.reason}: {condition.message}" if condition else "not reconciled yet"
    return Row("cluster", int(is_ready(tc)), 1, state)


def is_ready(tc: Cluster) -> bool:
    """True if the cluster's Ready condition is True."""
    return any(c.type == "Ready" and c.status == "True" for c in tc.status.conditions)


def blocked_by(tc: Cluster) -> str | None:
    """Why the operator needs the user to continue, or None."""
    condition = next((c for c in tc.status.conditions if c.type == "Progressing"), None)
    if condition is None or condition.status == "True" or condition.reason == "Done":
        return None
    return f"{condition.reason}: {condition.message}"


def waits_for(tc: Cluster) -> str:
    """Why a cluster is not Ready, according to its conditions."""
    conditions = {condition.type: condition for condition in tc.status.conditions}
    why = conditions.get("Progressing") or conditions.get("Ready")
    return f"{why.reason}: {why.message}" if why else "the operator has not looked at it yet"


class View(Protocol):
    """Shows changing objects; a reusable context manager."""

    def show(self, name: str, lines: Sequence[Row]) -> None:
        """Show the newest state of an object."""

    def drop(self, name: str) -> None:
        """Show that an object is gone."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End; the last output stays readable."""


class PlainView:
    """One line per change, for pipes, files and CI."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: dict[tuple[str, str], str] = {}

    def show(self, name: str, lines: Sequence[Row]) -> None:
        """Print the rows that changed."""
        for row in lines:
            line = str(row)
            if self._shown.get((name, row.component)) != line:
                self._shown[name, row.component] = line
                self._console.print(Printable(Text(f"{name}  {line}")), soft_wrap=True)

    def drop(self, name: str) -> None:
        """Print it once."""
        self._shown = {key: line for key, line in self._shown.items() if key[0] != name}
        self._console.print(Printable(Text(f"{name}  deleted")), soft_wrap=True)

    def __enter__(self) -> Self:
        """Nothing to prepare."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is nothing to clean up."""


class LiveView:
    """A table that redraws in place, for terminals."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._objects: dict[tuple[str, str], Sequence[Row]] = {}
        self._live = Live(console=console, auto_refresh=False)

    def show(self, name: str, lines: Sequence[Row]) -> None:
        """Redraw with the newest state if it has changed."""
        key = (name, lines[-1].component)
        if self._objects.get(key) != lines:
            self._objects[key] = lines
            self._live.update(Printable(self._table()), refresh=True)

    def drop(self, name: str) -> None:
        """Redraw without it."""
        self._objects = {key: lines for key, lines in self._objects.items() if key[0] != name}
        self._live.update(Printable(self._table()), refresh=True)

    def _table(self) -> Table:
        table = Table("name", "component", "ready", "stage", box=None, pad_edge=False)
        for (name, _), lines in self._objects.items():
            for row in lines:
                style = "green" if row.ready == row.wanted else "yellow"
                # Text objects, so that brackets in a message are not styles
                cells = (Text(name), Text(row.component), Text(f"{row.ready}/{row.wanted}", style), Text(row.state))
                table.add_row(*cells)
        return table

    def __enter__(self) -> Self:
        """Take over the lines below the cursor, with the current state."""
        self._live = Live(Printable(self._table()), console=self._console, auto_refresh=False)
        self._live.start(refresh=bool(self._objects))
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last table on the screen."""
        self._live.stop()


def view(console: Console) -> View:
    """A view that suits the output."""
    return LiveView(console) if console.is_terminal else PlainView(console)
