"""The same user with the same kubectl gets the same answers from both worlds."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kube.resources import NAMESPACES, PERSISTENT_VOLUMES
from tests.contract.kubectl_script import SCRIPT, Outcome, Step, carry_out
from tests.contract.recording import Exchange
from tests.contract.worlds import Side, eventually


@pytest.mark.controlplane
@pytest.mark.timeout(240)
def test_kubectl_gets_the_same_answers_from_both_worlds(sandbox: Side, real: Side, tmp_path: Path) -> None:
    eventually(lambda: is_empty(sandbox) and is_empty(real))
    with ThreadPoolExecutor(2) as both:
        ours, theirs = both.map(lambda side: carry_out(side, tmp_path / side.name), (sandbox, real))

    unexpected = [
        (step.name, their.output) for step, their in zip(SCRIPT, theirs, strict=True) if step.fails != bool(their.code)
    ]
    assert [] == unexpected
    differing = [
        difference(step, our, their) for step, our, their in zip(SCRIPT, ours, theirs, strict=True) if our != their
    ]
    assert not differing, "\n" + "\n".join(differing)


def is_empty(side: Side) -> bool:
    """True if the objects of other tests are gone."""
    namespaces = side.client.list_page(NAMESPACES).items
    contracts = [each for each in namespaces if each.metadata.name.startswith("contract-")]
    return not contracts and not side.client.list_page(PERSISTENT_VOLUMES).items


def difference(step: Step, ours: Outcome, theirs: Outcome) -> str:
    """The differences in one step, readable for a person."""
    lines = [step.name]
    if ours.code != theirs.code:
        lines.append(f"  exit code {ours.code}, Kubernetes {theirs.code}")
        lines += [f"  {who}: {text.strip()[:300]}" for who, text in (("here", ours.output), ("there", theirs.output))]
    by_request = {str(each): each for each in theirs.exchanges - ours.exchanges}
    for exchange in sorted(ours.exchanges - theirs.exchanges, key=str):
        other = by_request.pop(str(exchange), None)
        lines.append(f"  only here:  {exchange}" if other is None else f"  {exchange}{_keys(exchange, other)}")
    lines += [f"  only there: {each}" for each in sorted(by_request)]
    return "\n".join(lines)


def _keys(ours: Exchange, theirs: Exchange) -> str:
    return _listed("superfluous", ours.keys - theirs.keys) + _listed("missing", theirs.keys - ours.keys)


def _listed(what: str, keys: Iterable[str]) -> str:
    return "".join(f"\n    {what}: {key}" for key in sorted(keys))
