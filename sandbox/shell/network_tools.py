"""The tools that use DNS and other servers."""

from urllib.parse import urlsplit

from ports.transport import Request, Response
from sandbox.dataplane.tls import Certificate
from sandbox.shell.effects import Ask, ShellError, Steps, Surroundings
from sandbox.shell.state import Streams

_WGET_SERVER_ERROR = 8
_WGET_NO_CONNECTION = 4
_CURL_HTTP_ERROR = 22
_CURL_NO_CONNECTION = 7
_CURL_NO_CERTIFICATE = 58
_CURL_NAMES = {
    **dict.fromkeys(("-f", "-sf", "-fsS", "-sSf"), "--fail"),
    **dict.fromkeys(("-s", "-S", "-sS", "-L", "-sL", "--show-error", "--location"), "--silent"),
    **{"-k": "--insecure", "-m": "--max-time", "--connect-timeout": "--max-time", "-X": "--request", "-d": "--data"},
}
"""Other names of options, and options that make no difference."""
_CURL_FLAGS = frozenset({"--fail", "--insecure", "--silent"})
_CURL_VALUED = frozenset({"--max-time", "--request", "--data", "--cacert", "--cert", "--key", "-o"})
_DEFAULT_TIMEOUT = 900.0
_NOT_FOUND = 2


def wget(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:
    """`wget -qO- -T 3 --post-data=TEXT URL`."""
    words, url, path, timeout = list(arguments), "", "", _DEFAULT_TIMEOUT
    method, body = "GET", ""
    while words:
        word = words.pop(0)
        match word:
            case "-q" | "--no-check-certificate":
                continue
            case "-T":
                timeout = float(words.pop(0))
            case "-t":
                words.pop(0)
            case "-O" | "-qO":
                path = words.pop(0)
            case "-O-" | "-qO-":
                path = "-"
            case _ if word.startswith("--timeout="):
                timeout = float(word.partition("=")[2])
            case _ if word.startswith("--post-data="):
                method, body = "POST", word.partition("=")[2]
            case _ if word.startswith("-"):
                raise ShellError(f"wget: the sandbox does not know the option {word!r}")
            case _:
                url = word
    response = yield from _answer(_request(url, "Wget", timeout, method, body))
    if response is None or not 200 <= response.status < 300:
        why = "no connection" if response is None else f"server returned error: HTTP/1.1 {response.status}"
        streams.error.append(f"wget: {why}\n")
        return _WGET_NO_CONNECTION if response is None else _WGET_SERVER_ERROR
    _put(response, path or urlsplit(url).path.rpartition("/")[2] or "index.html", streams, host)
    return 0


def curl(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:
    """`curl -sS --fail --max-time 3 --request POST --data TEXT --cacert FILE --cert FILE --key FILE URL`."""
    given, url = _curl_options(arguments)
    files: dict[str, str] = {}
    for option in ("--cacert", "--cert", "--key"):
        found = host.read(given[option]) if option in given else ""
        if found is None:
            streams.error.append(f"curl: ({_CURL_NO_CERTIFICATE}) could not load {option[2:]} {given[option]}\n")
            return _CURL_NO_CERTIFICATE
        files[option] = found
    certificate = Certificate(files["--cacert"], files["--cert"], files["--key"], verifies="--insecure" not in given)
    timeout = float(given.get("--max-time", _DEFAULT_TIMEOUT))
    method = given.get("--request") or ("POST" if "--data" in given else "GET")
    response = yield from _answer(_request(url, "curl", timeout, method, given.get("--data", "")), certificate)
    if response is None or ("--fail" in given and response.status >= 400):
        code = _CURL_NO_CONNECTION if response is None else _CURL_HTTP_ERROR
        streams.error.append(f"curl: ({code}) {'no connection' if response is None else response.status}\n")
        return code
    _put(response, given.get("-o", "-"), streams, host)
    return 0


def _curl_options(arguments: list[str]) -> tuple[dict[str, str], str]:
    """The options of `curl` with their values, by their long names, and the URL. Raises ShellError."""
    given: dict[str, str] = {}
    url, words = "", list(arguments)
    while words:
        word = words.pop(0)
        name = _CURL_NAMES.get(word, word)
        if name in _CURL_VALUED:
            given[name] = words.pop(0)
        elif name in _CURL_FLAGS:
            given[name] = ""
        elif word.startswith("-"):
            raise ShellError(f"curl: the sandbox does not know the option {word!r}")
        else:
            url = word
    return given, url


def dig(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:
    """`dig NAME A NAME AAAA +search +short`: the addresses, all IPv4."""
    yield from ()
    names = [
        argument
        for argument in arguments
        if not argument.startswith(("+", "-")) and argument not in ("A", "AAAA", "ANY")
    ]
    for name in dict.fromkeys(names):
        streams.output.extend(f"{address}\n" for address in host.resolve(name))
    return 0


def nc(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:
    """`nc -zv -w 3 HOST PORT`: whether the port is open."""
    yield from ()
    words = list(arguments)
    if "-w" in words:
        del words[words.index("-w") : words.index("-w") + 2]
    flags, operands = [word for word in words if word.startswith("-")], [word for word in words if word[:1] != "-"]
    if not {*"".join(flags)} <= {*"-zv"} or len(operands) != 2:
        raise ShellError(f"nc: the sandbox does not know {' '.join(arguments)!r}")
    name, port = operands
    is_open = host.connects(name, int(port))
    streams.error.append(f"{name} ({name}:{port}) {'open' if is_open else 'closed'}\n")
    return 0 if is_open else 1


def nslookup(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:
    """`nslookup NAME`."""
    yield from ()
    name = arguments[-1] if arguments else ""
    found = host.resolve(name)
    if not found:
        streams.output.append(f"** server can't find {name}: NXDOMAIN\n")
        return 1
    streams.output.extend(f"Name:\t{name}\nAddress: {address}\n" for address in found)
    return 0


def getent(arguments: list[str], streams: Streams, host: Surroundings) -> Steps[int]:
    """`getent ahosts NAME`, `getent hosts NAME`."""
    yield from ()
    if len(arguments) != 2 or arguments[0] not in ("hosts", "ahosts", "ahostsv4"):
        raise ShellError(f"getent: the sandbox does not know {' '.join(arguments)!r}")
    kind, name = arguments
    found = host.resolve(name)
    for address in found:
        if kind == "hosts":
            streams.output.append(f"{address} {name}\n")
        else:
            streams.output.extend(f"{address} {socket}\n" for socket in (f"STREAM {name}", "DGRAM", "RAW"))
    return 0 if found else _NOT_FOUND


def _request(url: str, agent: str, timeout: float, method: str, body: str) -> Request:
    address = url if "://" in url else f"http://{url}"
    return Request(method or "GET", address, {"user-agent": agent}, body.encode() or None, timeout=timeout)


def _answer(request: Request, certificate: Certificate | None = None) -> Steps[Response | None]:
    found = yield Ask(request, certificate)
    return found if isinstance(found, Response) else None


def _put(response: Response, path: str, streams: Streams, host: Surroundings) -> None:
    text = response.body.decode(errors="replace")
    if path == "-":
        streams.output.append(text)
    else:
        host.write(path, text)
