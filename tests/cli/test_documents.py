"""Manifests from users, and errors for unusable ones."""

from pathlib import Path

import pytest

from cli.documents import BadDocument, decode_documents, read_bytes


def _documents(text: str | bytes) -> list[object]:
    return list(decode_documents(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text))


_READ: dict[str, tuple[str | bytes, list[object]]] = {
    "several documents": ("a: 1\n---\n---\n- b", [{"a": 1}, None, ["b"]]),
    "JSON": ('{"a": [1, 2.5, true, null]}', [{"a": [1, 2.5, True, None]}]),
    "JSON with tabs": ('\t{\n\t"a":\t"b\\tc",\r\n\t"d": []\t}\n', [{"a": "b\tc", "d": []}]),
    "JSON with pairs of UTF-16": (
        r'{"a": "\ud83d\uDE00\\ud83d\u00e9\/"}',
        [{"a": "\N{GRINNING FACE}\\ud83d\u00e9/"}],
    ),
    "JSON objects in a row": (
        '{"a": 1}{"b": 2} {"c": 3}\n\n{"d": 4}\n {"e": 5}',
        [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}, {"e": 5}],
    ),
    "JSON after a byte order mark": (b'\xef\xbb\xbf{\t"a": 1}', [{"a": 1}]),
    "UTF-16": ("a: é".encode("utf-16"), [{"a": "é"}]),
    "a byte order mark": (b"\xef\xbb\xbfa: 1", [{"a": 1}]),
    "keys that are numbers or booleans": ("{1: a, yes: b}", [{"1": "a", "true": "b"}]),
    "dates and clock times are text": (
        "{a: 2026-01-02, b: 12:30, c: =}",
        [{"a": "2026-01-02", "b": "12:30", "c": "="}],
    ),
    "an alias": ("{a: &x [1], b: *x}", [{"a": [1], "b": [1]}]),
    "a merge of what is overridden": ("- &x {a: 1, b: 2}\n- {<<: *x, b: 3}", [[{"a": 1, "b": 2}, {"a": 1, "b": 3}]]),
    "the largest integers": (f"[{-(1 << 63)}, {(1 << 64) - 1}]", [[-(1 << 63), (1 << 64) - 1]]),
}


@pytest.mark.parametrize("case", _READ)
def test_reads_documents_as_kubectl_does(case: str) -> None:
    text, expected = _READ[case]
    assert expected == _documents(text)


_REFUSED: dict[str, tuple[str | bytes, str]] = {
    "binary": (b"\x7fELF\xff\xfe", "is no text in UTF-8: byte 0xff at position 4; save it as UTF-8"),
    "latin-1": ("name: café".encode("latin-1"), "byte 0xe9 at position 9"),
    "half of UTF-16": (b"\xff\xfea\x00:", "is no text"),
    "a control character": ("a: \x00", "control character U+0000"),
    "half of a pair in JSON": ('{"a":\t"\\ud800"}', "line 1, column 7: has half of a UTF-16 pair"),
    "two values for one key of JSON": (
        '{\n\t"a": 1,\n\t"a": 2\n}',
        "line 3, column 2: a has a value already, in line 2",
    ),
    "JSON that breaks off": ('{"a":\t{"b": 1}', "not valid YAML"),
    "deep nesting of JSON": ('{"a":' * 5000 + "1" + "}" * 5000, "is nested more than 100 levels deep"),
    "half of a pair": ('a: "\\ud800"', "line 1, column 4: has half of a UTF-16 pair"),
    "an escape beyond Unicode": ('a: "\\Uffffffff"', "not valid YAML"),
    "deep nesting": ("a: " + "[" * 5000, "is nested more than 100 levels deep"),
    "deep nesting in blocks": ("".join(f"{' ' * n}a:\n" for n in range(500)), "is nested more than 100 levels deep"),
    "an alias within its own value": ("a: &x\n  b: *x", "line 2, column 6: the alias *x stands within its own value"),
    "a long text a thousand times": (
        f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 1_000}]",
        "has more than 500000 values once its aliases are written out",
    ),
    "billions of values": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
        "has more than 500000 values once its aliases are written out",
    ),
    "an integer of 5,000 digits": ("a: " + "9" * 5000, "is a number of more than 64 bits; write it in quotes"),
    "a number beyond 64 bits": (f"a: {1 << 64}", "is a number of more than 64 bits"),
    "infinity": ("a: -.inf", "is no finite number"),
    "two values for one key": ("a:\n  b: 1\n  b: 2", "line 3, column 3: b has a value already, in line 2; keep one"),
    "two values for one number as key": ("{1: a, '1': b}", "1 has a value already"),
    "a key that is a list": ("{[a]: b}", "the name of a field must be text"),
    "a tag of Python": ("a: !!python/name:os.system", "the tag !!python/name:os.system has no meaning"),
    "binary data in YAML": ("a: !!binary aGk=", "the tag !!binary has no meaning"),
    "a value that does not fit its tag": ("a: !!int x", "line 1, column 4: 'x' is no int; remove the tag"),
    "a tab as indentation": ("a:\n\tb: 1", "line 2, column 1: a tab, which YAML does not take; indent with spaces"),
    "an unknown alias": ("a: *b", "found undefined alias 'b' in line 1, column 4"),
}


@pytest.mark.parametrize("case", _REFUSED)
def test_refuses_values_that_no_object_can_hold_and_names_the_place(case: str) -> None:
    text, told = _REFUSED[case]
    with pytest.raises(BadDocument) as refused:
        _documents(text)
    assert told in str(refused.value)


def test_stops_reading_an_endless_file() -> None:
    with pytest.raises(BadDocument, match="is larger than 4 MiB"):
        read_bytes(Path("/dev/zero"))


@pytest.mark.parametrize(("path", "told"), [("/", "Is a directory"), ("/no/such", "No such file or directory")])
def test_names_a_path_that_is_no_file(path: str, told: str) -> None:
    with pytest.raises(BadDocument, match=f"{told}; give the path of a YAML file"):
        read_bytes(Path(path))
