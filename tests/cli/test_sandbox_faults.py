"""`tidb-operator sandbox fault` and `heal`, in front of a sandbox that runs."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cli.main import main
from cli.sandbox import change_faults as run
from kube.errors import BadRequest
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from sandbox.world import World


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[Mapping[str, str]]:
    """The variables that name the sandbox."""
    world = World(SystemClock(), SystemRandomness())
    world.start()
    try:
        yield {"KUBECONFIG": str(world.write_kubeconfig(tmp_path))}
    finally:
        world.stop()


@pytest.mark.slow
def test_a_fault_is_listed_until_it_is_healed(
    environ: Mapping[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", environ["KUBECONFIG"])

    def shown(*arguments: str) -> list[str]:
        assert 0 == main(["sandbox", *arguments])
        return capsys.readouterr().out.splitlines()

    assert ["nothing is broken"] == shown("fault")
    assert ["image-missing a:b"] == shown("fault", "image-missing", "a:b")
    assert ["image-missing a:b", "network-slow 2"] == shown("fault", "network-slow", "2")
    assert ["network-slow 2"] == shown("heal", "image-missing", "a:b")
    assert ["nothing is broken"] == shown("heal")
    with pytest.raises(BadRequest, match="no fault image-missing a:b is in; there are none"):
        run(["heal", "image-missing", "a:b"], environ)
