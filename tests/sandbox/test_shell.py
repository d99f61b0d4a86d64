"""The shell for start scripts behaves like bash: the outputs and statuses below are from bash 5."""

import pytest

from sandbox.shell.effects import Run
from sandbox.shell.shell import Shell
from sandbox.shell.state import Input, Streams


class Host:
    """A container with a few files."""

    hostname = "pod-0"
    address = "10.0.0.1"

    def __init__(self) -> None:
        self.files: dict[str, str] = {"/data/join": "a=http://a:2380,b=http://b:2380"}

    def resolve(self, name: str) -> list[str]:
        return [self.address] if name == "known" else []

    def connects(self, host: str, port: int) -> bool:
        return (host, port) == ("known", 4000)

    def read(self, path: str) -> str | None:
        return "" if path == "/dev/null" else self.files.get(path)

    def write(self, path: str, text: str) -> None:
        self.files[path] = text

    def remove(self, path: str) -> None:
        del self.files[path]

    def is_directory(self, path: str) -> bool:
        return path == "/data"

    def has_program(self, name: str) -> bool:
        return name == "/server"

    def help_of(self, name: str) -> str:
        return "--config string\n" if name == "/server" else ""

    def random(self, below: int) -> int:
        return below - 1


_JOIN = "j=`cat /data/join | tr ',' '\\n' | awk -F'=' '{print $2}' | tr '\\n' ','`; echo ${j%,}"


def run(text: str) -> tuple[int, str]:
    """Exit status and output; a program prints its arguments and ends with 5."""
    streams = Streams(Input(), [], [])
    steps = Shell("script", Host(), {"HOSTNAME": "pod-0"}, streams).run(text)
    reply: int | None = None
    while True:
        try:
            effect = steps.send(reply)
        except StopIteration as ended:
            return ended.value, "".join(streams.output)
        reply = None
        if isinstance(effect, Run):
            streams.output.append(f"{effect.arguments} {'replaces' if effect.replaces else 'runs'}\n")
            reply = 5


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("hello a  b c\n", 'echo hello "a  b"   c  # a comment'),
        ("2\n", 'A="x \\\ny \\\n"; set -- $A; echo $#'),
        ("basic\n", "x=`echo basic-pd-peer | sed 's/-pd-peer//'`; echo $x"),
        ("http://a:2380,http://b:2380\n", _JOIN),
        ("http://a:2380,http://b:2380\n", "sed 's/[^,=]*=//g' /data/join; echo"),
        ("a:1,b:2\n", "echo 'https://a:1,http://b:2' | sed 's#https\\{0,1\\}://##g'"),
        ("cG9kOjIzODAK", 'echo pod:2380 | base64 | tr "\\n" " " | sed "s/ //g"'),
        ("3\n", "i=0; while true; do i=$(( i+1 )); if [[ ${i} -ge 3 ]]; then break; fi; done; echo $i"),
        ("1\n3\n", "for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done"),
        ("d--\n", 'echo ${X:-d}-"${Y:+n}"-$Z'),
        ("q 2 1\n3\nnone\n", 'f() { local a=1; echo "$1 $# $a"; return 3; }; f q w; echo $?; echo "${a:-none}"'),
        ("yes\n", "case abc in b*) echo no ;; a* | c) echo yes ;; esac"),
        (" a pod-0 $x\n", "cat <<EOF\n a $HOSTNAME \\$x\nEOF\n"),
        ("$HOSTNAME\n", "cat <<'EOF'\n$HOSTNAME\nEOF\n"),
        ("[a]\n[b c]\n2 --x=y z\n", 'set -- a "b c"; for x; do echo "[$x]"; done; set -- "$1" --x="y z"; echo $# "$2"'),
        ("glob\n", "[[ Xdebug == Xde* ]] && echo glob; [[ ! a == 'a*' ]]"),
        ("in\n", "[[ ' 1 2 ' =~ ' 2 ' && -n x ]] && echo in"),
        ("one two three four 3\n", 'a=(one "two three"); a+=(four); echo "${a[@]}" ${#a[@]}'),
        ("[  a b]\n[c]\n", 'while IFS= read -r line; do echo "[$line]"; done <<< "  a b\nc"'),
        ("3 0 1\n", "x=$(exit 3); a=$?; false | true; b=$?; set -o pipefail; false | true; echo $a $b $?"),
        ("a b\n", 'eval "echo \\"a b\\""'),
        ("7 1 2 -3\n", "echo $((1+2*3)) $(( (1+2)*3 % 4 )) $((5/2)) $((-7/2))"),
        ("4\n", "echo $((RANDOM % 5 + 4 - RANDOM % 5))"),
        ("found\nunknown\n", "nslookup known >/dev/null && echo found; nslookup other >/dev/null 2>&1 || echo unknown"),
        ("10.0.0.1\n", "dig known A known AAAA +search +short; dig other +short"),
        ("file\ndirectory\n", "[ -s /data/join ] && echo file; [ -d /data ] && echo directory; [ ! -f /data ]"),
        ("two\none\n", "{ echo one; echo two; } | sort -r; echo gone >/dev/null"),
        ("x 1\n", "echo x > /tmp/f; cat /tmp/f | { read v; echo $v 1; }"),
        ("('/server', '--a=b c', 'd') runs\n5\n", '/server --a="b c" d; echo $?'),
        ("knows it\n", "if /server --help 2>&1 | grep -q config; then echo knows it; fi"),
    ],
)  # fmt: skip
@pytest.mark.rule("7")
def test_a_script_prints_the_same_as_in_bash(output: str, text: str) -> None:
    assert (0, output) == run(text)


@pytest.mark.parametrize(
    ("code", "output", "text"),
    [
        (5, "('/server', '-x') replaces\n", "exec /server -x\necho never"),
        (1, "", "set -u; echo $X"),
        (1, "survived\n", "set -e; false || echo survived; if false; then :; fi; false; echo never"),
        (127, "", "nothing-like-it"),
        (2, "", "fi"),
        (2, "", 'echo "open'),
        (3, "", "(exit 3)"),
        (1, "", "awk 'BEGIN { print 1 }'"),
    ],
)
@pytest.mark.rule("7")
def test_a_script_ends_as_in_bash(code: int, output: str, text: str) -> None:
    assert (code, output) == run(text)
