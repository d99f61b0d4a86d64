"""Between which versions TiDB can pause DDL (lifecycle.md 7.6)."""

import pytest

from member.tidb.rolling import can_pause


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("v7.1.2", "v7.1.3", True),
        ("v7.1.2", "v7.4.0", True),
        ("v7.1.5", "v8.5.0", True),
        ("v7.4.0", "v7.4.1", True),
        ("v8.5.0", "v8.5.1-patch", True),
        ("v7.1.2", "v7.2.0", False),
        ("v7.1.1", "v7.1.2", False),
        ("v7.2.0", "v7.4.0", False),
        ("v7.3.0", "v7.4.0", False),
        ("v6.5.0", "v8.5.0", False),
        ("v8.5.1", "v8.5.0", False),
        ("v8.5.0", "v8.5.0", False),
        ("8.5.0", "8.5.1", False),
        ("v8.5.0", "latest", False),
        ("nightly", "v8.5.0", False),
        ("v8.5.0", "vnext", False),
    ],
)
@pytest.mark.rule("lifecycle-7.6")
def test_only_some_versions_get_the_call(source: str, target: str, expected: bool) -> None:
    assert expected == can_pause(source, target)
