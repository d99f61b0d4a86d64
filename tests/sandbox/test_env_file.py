"""The file that a shell sources to use a sandbox: its variables, and how to undo them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.config import load_kubeconfig
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from sandbox.world import World

_SHOW = 'echo "${KUBECONFIG-none} ${SANDBOX_PROXY-none} $PATH"; env | grep -i _proxy= | grep -v SANDBOX'


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """The directory of a sandbox's files; its programs are in `its bin`."""
    world = World(SystemClock(), SystemRandomness())
    world.start()
    try:
        world.write_kubeconfig(tmp_path / "it's", tmp_path / "its bin")
        yield tmp_path / "it's"
    finally:
        world.stop()


def _shown(shell: str, script: str, directory: Path, **environ: str) -> list[str]:
    done = subprocess.run(
        [shell, "-uc", f'. "$ENV_FILE"\n{script}'],
        env={"PATH": "/usr/bin:/bin", "ENV_FILE": str(directory / "env")} | environ,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert "" == done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_shell_gets_the_kubeconfig_and_programs_but_no_proxy_and_can_undo_it(shell: str, directory: Path) -> None:
    proxy = load_kubeconfig(str(directory / "kubeconfig"), SystemClock()).pods_proxy_url
    used = f"{directory / 'kubeconfig'} {proxy} {directory.parent / 'its bin'}:/usr/bin:/bin"
    assert [used] == _shown(shell, _SHOW, directory)
    assert [used] == _shown(shell, f'. "$ENV_FILE"; {_SHOW}', directory)
    undone = f"sandbox_off; {_SHOW}; command -v sandbox_off; set | grep -c '^_sandbox'"
    assert ["none none /usr/bin:/bin", "0"] == _shown(shell, undone, directory)
    assert ["mine none /usr/bin:/bin", "0"] == _shown(shell, undone, directory, KUBECONFIG="mine")
