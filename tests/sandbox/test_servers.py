"""The components' programs: the sandbox's own, and additional ones."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from apis.components import DM_CLUSTER, TIDB_CLUSTER, component_names
from member.components import workload_names
from ports.clock import FakeClock
from ports.randomness import SeededRandomness
from sandbox.dataplane.listening import Setting
from sandbox.dataplane.network import Running
from sandbox.dataplane.processes import Exit, Launch
from sandbox.dataplane.program import Program
from sandbox.dataplane.runtime import DataPlane
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.servers import SERVERS, by_command
from sandbox.notifier import Notifier
from sandbox.timings import Timings
from tests.sandbox.test_data_plane import ByFirstLabel

_CACHE = ServerProgram(
    name="cache",
    start=lambda launch, _: Program(launch, None),
    tables=("log",),
    numbers=("memory.entries",),
    durations=("memory.lifetime",),
    certificates=("security.ca",),
    urls=(Setting("url"),),
)


def _started(servers: Iterable[ServerProgram], config: str = "", flags: str = "") -> Running:
    clock = FakeClock()
    plane = DataPlane(
        clock=clock,
        randomness=SeededRandomness(1),
        timings=Timings(),
        notifier=Notifier(clock),
        directory=ByFirstLabel(),
        identity=lambda _, __: plane.transport(),
        programs={},
        servers=servers,
        pause=clock.step,
    )
    return plane.start(
        Launch(
            namespace="ns",
            pod="basic-cache-0",
            pod_uid="1",
            image="cache:v1",
            command=("/cache-server", "--config=/etc/cache/cache.toml", *flags.split()),
            files={"/etc/cache/cache.toml": config},
            ports=frozenset({6379}),
        )
    )


def test_every_managed_component_has_a_program() -> None:
    kinds = (TIDB_CLUSTER, DM_CLUSTER)
    assert set() == {name for of in kinds for name in workload_names(of)} - set(SERVERS)
    assert set() == set(SERVERS) - {name for of in kinds for name in component_names(of=of)}


def test_an_additional_component_has_its_own_program() -> None:
    process = _started([_CACHE]).process
    assert process.exit is None
    assert process.listens(6379)


def test_a_program_may_have_another_name_than_its_component() -> None:
    other = replace(_CACHE, file="cachet")
    assert ("cache-server", "cachet") == (_CACHE.command, other.command)
    assert by_command([other])["cachet"] is other


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("log = 1", "invalid type for key 'log': expected a table"),
        ("[memory]\nentries = 'many'", "invalid type for key 'memory.entries': expected an integer, not 'many'"),
        ("[memory]\nlifetime = 'long'", "'long' is not a duration; use, for example, 90s, 10m or 1h30m"),
        ("[log]\nlevel = 'loud'", "unknown log level 'loud'"),
    ],
)
def test_a_program_refuses_an_unreadable_configuration(config: str, message: str) -> None:
    assert Exit(1, f"invalid configuration file: {message}") == _started([_CACHE], config).process.exit


def test_a_program_that_speaks_tls_needs_its_certificate() -> None:
    missing = "open /var/lib/cache-tls/ca.crt: no such file or directory"
    named = "[security]\nca = '/var/lib/cache-tls/ca.crt'"
    unnamed = "TLS key/cert must be provided for client url https://0.0.0.0"
    assert Exit(1, missing) == _started([_CACHE], named).process.exit
    assert Exit(1, unnamed) == _started([_CACHE], flags="--url=https://0.0.0.0").process.exit
