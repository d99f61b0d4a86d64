"""The program of PD's pods."""

from sandbox.dataplane.pd.process import URLS, PdProcess
from sandbox.dataplane.pd.routes import answer
from sandbox.dataplane.server_program import ServerProgram

PD = ServerProgram(
    name="pd",
    start=lambda launch, deps: PdProcess(launch, deps, answer),
    tables=("log", "schedule", "replication", "security", "pd-server", "dashboard", "metric"),
    numbers=("lease", "replication.max-replicas", "schedule.leader-schedule-limit", "schedule.region-schedule-limit"),
    durations=("schedule.max-store-down-time",),
    certificates=("security.cacert-path", "security.cert-path", "security.key-path"),
    urls=URLS,
    allowed_names="security.cert-allowed-cn",
)
