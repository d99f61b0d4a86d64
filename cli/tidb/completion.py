"""Completion: `kubectl_complete-tidb`, which kubectl calls, and shell scripts for `kubectl-tidb` itself.

kubectl (since 1.26) runs that program with the words after `kubectl tidb`, and prints its output as completions. The
last line, e.g. `:4`, is a directive for the shell: no file names.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from cli.failures import plainly
from cli.tidb.command import Command
from cli.tidb.completing import FILES, Line, completions
from cli.tidb.connection import Kubeconfig
from cli.tidb.main import make_parser
from cli.tidb.output import Output
from cli.tidb.session import Session
from ports.clock import SystemClock

_NO_FILES, _FILES = ":4", ":0"
"""cobra's ShellCompDirectiveNoFileComp and ShellCompDirectiveDefault."""

_PATIENCE = 3.0
"""Seconds for a request: a user has pressed a key."""

SCRIPTS: Mapping[str, str] = {
    "bash": """\
# source <(kubectl tidb completion bash)
_kubectl_tidb() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case "$line" in
            :0) compopt -o default ;;
            :*) ;;
            *) COMPREPLY+=("$line") ;;
        esac
    done < <(kubectl_complete-tidb "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kubectl_tidb kubectl-tidb
""",
    "zsh": """\
#compdef kubectl-tidb
# source <(kubectl tidb completion zsh)
_kubectl_tidb() {
    local -a found
    found=("${(@f)$(kubectl_complete-tidb "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ ${found[-1]} == :0 ]] && _files
    found=("${(@)found:#:*}")
    compadd -a found
}
compdef _kubectl_tidb kubectl-tidb
""",
    "fish": """\
# kubectl tidb completion fish | source
function __kubectl_tidb
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    kubectl_complete-tidb $words[2..-1] "$current" 2>/dev/null | string match -v -r '^:'
end
complete -c kubectl-tidb -f -a '(__kubectl_tidb)'
""",
}
"""The scripts by shell; all call the same program."""


def main(argv: Sequence[str] | None = None) -> int:
    """`kubectl_complete-tidb`: print the completions of the last word."""
    words = list(sys.argv[1:] if argv is None else argv)
    return plainly(lambda: _answer(words, os.environ), "kubectl_complete-tidb")


def _answer(words: Sequence[str], environ: Mapping[str, str]) -> int:
    with ExitStack() as to_close:

        def open_session(given: argparse.Namespace) -> Session:
            clock = SystemClock()
            server = Kubeconfig(given.kubeconfig, given.context, environ, clock, timeout=_PATIENCE)
            to_close.callback(server.close)
            return Session(server, clock, Output(), given.namespace)

        found = completions(Line(words, make_parser(words)), open_session)
    lines = [_FILES] if found == [FILES] else [*found, _NO_FILES]
    print("\n".join(lines))
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell")


def _run(_session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    sys.stdout.write(SCRIPTS[given.shell])
    return 0


COMPLETION = Command(
    _run,
    _add_arguments,
    details="`kubectl tidb` itself is completed by kubectl, which asks kubectl_complete-tidb.",
)
