"""A container whose main process is a shell: it runs its script until it runs a program or ends."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ports.clock import Clock
from ports.transport import Request, Response
from sandbox.dataplane.container import Container
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found
from sandbox.dataplane.tls import Certificate
from sandbox.shell.effects import Ask, Reply, Run, Sleep
from sandbox.shell.shell import Shell
from sandbox.shell.state import Input, Streams

_SHELLS = ("sh", "bash", "dash", "ash")
_CANNOT_OPEN = 127
_TOOL = 0.01
"""Seconds of script time for each further request of a tool at the same instant."""
_KEPT = 20
"""The number of texts of the log that are kept."""


class ScriptProcess:
    """A shell as the first process of its container, which by default ignores SIGTERM."""

    def __init__(
        self, launch: Launch, container: Container, clock: Clock, second: float, patience: float = 1.0
    ) -> None:
        """`second` is the duration of one second of a `sleep`, `patience` of one second of a time-out."""
        name, text, options = _script(launch.command, container.read)
        self._clock = clock
        self._second = second
        self._patience = patience
        self._log: list[str] = []
        self.printed: list[str] = []
        """The printed text; a reader takes it away."""
        self._shell = Shell(name, container, launch.env, Streams(Input(), self._log, self._log))
        self._shell.state.options.update(options)
        self._steps = self._shell.run(text or "")
        self._is_one_command = "c" in _letters(launch.command) and not set(text or "") & set("\n;|&")
        """True if the script is one command, for which the shell makes way as with `exec`."""
        self._due: float | None = clock.now()
        self.woken = False
        self._question: Request | None = None
        self._certificate: Certificate | None = None
        self._answer: Response | None = None
        self._answered_at: float | None = None
        self.runs: Run | None = None
        """The program that it wants to run, or waits for."""
        self.exit = Exit(_CANNOT_OPEN, f"{launch.command[0]}: can't open {name!r}") if text is None else None

    def step(self) -> float | None:
        """Continue after a sleep; return when it ends."""
        if self.exit is not None or self.runs is not None or self._question is not None or self._due is None:
            return None
        if self._clock.now() >= self._due:
            reply, self._answer = self._answer, None
            self._resume(reply)
        return self._due

    def rests_until(self) -> float:
        return float("inf") if self._question is not None or self._due is None else self._due

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the tool that sends a request now."""
        return self._certificate

    def question(self) -> Request | None:
        """The current request of a tool."""
        return self._question if self.exit is None else None

    def answered(self, response: Response | None) -> None:
        """Continue with the answer: immediately, or slightly later if it is not the first at this instant."""
        if self.exit is not None or self._question is None:
            return
        self.woken = True
        self._question, now = None, self._clock.now()
        if now == self._answered_at:
            # otherwise a script that polls without sleeping would stop time
            self._answer, self._due = response, now + _TOOL * self._second
        else:
            self._answered_at = now
            self._resume(response)

    def ended(self, code: int) -> None:
        """Continue after the end of the program that it waited for."""
        self.runs = None
        self._resume(code)

    def listens(self, port: int) -> bool:  # noqa: ARG002
        """Accept no connection."""
        return False

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        return Answer(not_found())

    def stop(self) -> None:
        """SIGTERM: the first process of a container ignores it without a trap."""
        if self._shell.state.traps.get("TERM", "").startswith("exit"):
            self.woken, self.exit = True, Exit(0)

    def kill(self, code: int) -> None:
        self.woken, self._due, self.exit = True, None, Exit(code)

    def _resume(self, reply: Reply) -> None:
        """Run until the world is needed."""
        self._due = None
        while self._due is None:
            before = len(self._log)
            try:
                effect = self._steps.send(reply)
            except StopIteration as ended:
                self.exit = Exit(ended.value, self._last_words() if ended.value else "")
                return
            finally:
                self.printed += self._log[before:]
                del self._log[:-_KEPT]
            match effect:
                case Ask():
                    request = effect.request
                    self._question = replace(request, timeout=request.timeout * self._patience)
                    self._certificate = effect.certificate
                    return
                case Run():
                    self.runs = replace(effect, replaces=True) if self._is_one_command else effect
                    return
                case Sleep(seconds) if seconds == float("inf"):
                    return
                case Sleep(seconds) if seconds > 0:
                    self._due = self._clock.now() + seconds * self._second
            reply = None

    def _last_words(self) -> str:
        lines = [line for text in self._log for line in text.splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def is_script(command: Sequence[str]) -> bool:
    """True if a container's command is a shell with a script."""
    return len(command) > 1 and command[0].rpartition("/")[2] in _SHELLS


def _letters(command: Sequence[str]) -> str:
    """The options of a shell, as letters."""
    return "".join(word[1:] for word in command[1:] if word.startswith("-"))


def script_of(launch: Launch) -> str:
    """The text of a container's script; empty without one."""
    return _script(launch.command, launch.file)[1] or "" if is_script(launch.command) else ""


def _script(command: Sequence[str], read: Callable[[str], str | None]) -> tuple[str, str | None, str]:
    """The script's name, its text (None without such a file), and the shell's options."""
    words, options = list(command[1:]), ""
    while words and words[0].startswith("-"):
        options += words.pop(0)[1:]
    if not words:
        return command[0], "", options
    if "c" in options:
        return command[0], words[0], options.replace("c", "")
    return words[0], read(words[0]), options
