"""Untrusted YAML becomes a tree, or is rejected before it takes the memory."""

import pytest

from kube.yaml_tree import TooLarge, load_yaml

_LEVELS = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


def test_expands_aliases() -> None:
    assert {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]} == load_yaml(b"a: &a {b: 1}\nc: [*a, *a]")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"a0: &a0 x\n{_LEVELS}", id="billions of values"),
        pytest.param(f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 1_000}]", id="a long text a thousand times"),
        pytest.param(f"a: &a {'x' * 100_000}\nb: [{'{*a : 1}, ' * 1_000}]", id="a long key a thousand times"),
    ],
)
def test_rejects_a_document_that_expands_beyond_an_object(text: str) -> None:
    with pytest.raises(TooLarge, match="its aliases stand for more than an object can hold"):
        load_yaml(text.encode())
