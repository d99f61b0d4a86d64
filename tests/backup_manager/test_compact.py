"""A compaction, from Prepare to Complete or RetryFailed (backup.md 6, 7.10), and its repetition by a second pod."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from backup_manager.child_process import CannotStart, OnLine
from backup_manager.compact import TIKV_CTL, CompactOptions, run_compact
from backup_manager.outcomes import JobFailed, Stopped
from backup_manager.outside import Outside
from backup_manager.tikv_ctl_log import read_line
from kube.objects import Json
from kube.resources import COMPACT_BACKUPS
from ports.stopping import Stop
from tests.backup_manager.storage.servers import CANARY
from tests.backup_manager.test_kills import Life, survive
from tests.backup_manager.worlds import NAME, NAMESPACE, World

OPTIONS = CompactOptions(NAMESPACE, NAME)
BASE64 = "c3RvcmFnZQ=="
SPAWNING = {"message": "Spawning compaction.", "input_max_ts": 1900}


def finishing(number: int) -> Json:
    """The log line of one finished part of two."""
    return {
        "level": "INFO",
        "message": "Finishing compaction.",
        "meta_completed": number,
        "meta_total": 2,
        "bytes_compacted": number * 50,
        "bytes_to_compact": 100,
    }


USUAL = (SPAWNING, SPAWNING | {"input_max_ts": 1500}, finishing(1), finishing(2))


@dataclass
class Tools:
    """BR, which encodes the storage, and tikv-ctl, which logs `lines` and ends with `code`."""

    lines: Sequence[Json | str] = USUAL
    code: int = 0
    told: Sequence[str] = (BASE64,)
    meanwhile: Callable[[], None] = lambda: None
    commands: list[Sequence[str]] = field(default_factory=list)
    life: Life = field(default_factory=lambda: Life(1 << 30, after=False))

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, _stop: Stop) -> int:
        self.commands.append(command)
        if command[0] != TIKV_CTL:
            for text in self.told:
                on_line(text, False)
            return 0 if self.told else 1
        assert environ["AWS_SECRET_ACCESS_KEY"] == CANARY
        for line in self.lines:
            self.life.call(self.meanwhile)
            on_line(line if isinstance(line, str) else json.dumps(line), True)
        return self.code


def outside(world: World, tools: Tools | None = None, stop: Stop | None = None) -> Outside:
    return replace(world.outside(stop), launcher=tools or Tools())


def failure(world: World, tools: Tools) -> str:
    """The message of a failed compaction, which will be retried."""
    with pytest.raises(JobFailed):
        run_compact(OPTIONS, outside(world, tools))
    status = world.status(COMPACT_BACKUPS)
    assert "RetryFailed" == status["state"]
    assert status["backoffRetryStatus"][-1]["retryReason"] == status["message"]
    message: str = status["message"]
    return message


@pytest.mark.rule("backup-7.10")
def test_a_compaction_that_works(world: World) -> None:
    world.compact(concurrency=6)
    tools = Tools(meanwhile=lambda: world.clock.step(5.0))
    run_compact(OPTIONS, outside(world, tools))
    assert {
        "state": "Complete",
        "progress": "[READ_META(2/2),COMPACT_WORK(100/100)]",
        "endTs": "1900",
    } == world.status(COMPACT_BACKUPS)
    base64ify, compaction = tools.commands
    assert ["/var/lib/br-bin/br", "operator", "base64ify", "--storage=s3://bucket/some/prefix"] == base64ify[:4]
    assert (
        "/var/lib/kvctl-bin/tikv-ctl --log-level INFO --log-format json compact-log-backup "
        f"--storage-base64 {BASE64} --from 1000 --until 2000 -N 6"
    ).split() == compaction


@pytest.mark.rule("backup-7.10")
def test_times_are_utc(world: World) -> None:
    world.compact(startTs="2026-01-01 00:00:00", endTs="2026-01-01T00:00:01Z")
    tools = Tools()
    run_compact(OPTIONS, outside(world, tools))
    start, end = (int(tools.commands[1][tools.commands[1].index(flag) + 1]) for flag in ("--from", "--until"))
    assert 1000 << 18 == end - start


@pytest.mark.rule("backup-6")
def test_progress_is_written_now_and_then(world: World) -> None:
    world.compact()
    seen: list[str] = []

    def look() -> None:
        seen.append(world.status(COMPACT_BACKUPS).get("progress", ""))
        world.clock.step(1.0)

    run_compact(OPTIONS, outside(world, Tools(lines=[finishing(each) for each in range(8)], meanwhile=look)))
    assert ["", "0", "0", "0", "3", "3", "3", "6"] == [each[len("[READ_META(") :][:1] for each in seen]


@pytest.mark.rule("backup-6")
def test_the_end_only_grows(world: World) -> None:
    """v1.6 compares texts: 999 would be more than 1900."""
    world.compact({"state": "RetryFailed", "endTs": "999", "message": "x"})
    run_compact(OPTIONS, outside(world))
    assert "1900" == world.status(COMPACT_BACKUPS)["endTs"]
    world.client.patch(COMPACT_BACKUPS, NAME, NAMESPACE, {"status": {"state": "Running", "endTs": "5000"}})
    run_compact(OPTIONS, outside(world))
    assert "5000" == world.status(COMPACT_BACKUPS)["endTs"]


@pytest.mark.rule("backup-7.10")
def test_the_message_is_the_error_of_tikv_ctl(world: World) -> None:
    world.compact()
    bad = {"level": "ERROR", "message": "cannot read", "err": "no such file"}
    lines: list[Json | str] = [SPAWNING, bad, "thread panicked"]
    expected = "tikv-ctl ended with exit code 1: cannot read no such file\nthread panicked"
    assert expected == failure(world, Tools(lines=lines, code=1))


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.rule("backup-7.10")
def test_an_aborted_compaction_has_failed(world: World, code: int) -> None:
    world.compact()
    aborted = {"Message": "Compaction aborted.", "err": "disk full"}
    assert "disk full" in failure(world, Tools(lines=[aborted], code=code))


@pytest.mark.rule("backup-6")
def test_every_failure_is_noted(world: World) -> None:
    world.compact()
    for _ in range(3):
        failure(world, Tools(code=1))
    assert [0, 1, 2] == [each["retryNum"] for each in world.status(COMPACT_BACKUPS)["backoffRetryStatus"]]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"startTs": "2000", "endTs": "1000"}, "spec.endTs: '1000' must not be before spec.startTs, '2000'"),
        ({"concurrency": 0}, "spec.concurrency: 0 must be at least 1"),
        ({"startTs": "soon"}, "spec.startTs, spec.endTs: 'soon' is no timestamp"),
        ({"s3": None}, "storage unknown not supported yet"),
    ],
)
@pytest.mark.rule("backup-7.10")
def test_an_impossible_compaction_runs_nothing(world: World, spec: Json, expected: str) -> None:
    world.compact(**spec)
    tools = Tools()
    assert failure(world, tools).startswith(expected)
    assert [] == tools.commands


@pytest.mark.rule("backup-7.10")
def test_names_a_br_without_base64ify(world: World) -> None:
    world.compact()
    assert "ended with exit code 1" in failure(world, Tools(told=()))
    assert "does this BR know it (spec.toolImage)?" in failure(world, Tools(told=("", " ")))


@pytest.mark.rule("backup-7.10")
def test_names_a_missing_program(world: World) -> None:
    world.compact()

    class Nothing(Tools):
        def run(self, command: Sequence[str], *_: Any) -> int:
            raise CannotStart(f"cannot start {command[0]}: No such file or directory")

    assert "cannot start /var/lib/br-bin/br" in failure(world, Nothing())


def test_no_credential_and_no_address_of_the_storage_gets_into_log_or_status(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.compact(s3=None, azblob={"container": "c", "storageAccount": "a", "sasToken": "sv=1&sig=abcdef"})
    lines = [{"level": "ERROR", "message": f"{CANARY} for {BASE64}"}]
    message = failure(world, Tools(lines=lines, code=1))
    output = "".join(capsys.readouterr())
    for secret in (CANARY, BASE64, "abcdef"):
        assert secret not in message + output


def test_a_second_pod_of_a_complete_compaction_does_nothing(world: World) -> None:
    world.compact({"state": "Complete", "endTs": "5"})
    tools = Tools()
    run_compact(OPTIONS, outside(world, tools))
    assert ({"state": "Complete", "endTs": "5"}, []) == (world.status(COMPACT_BACKUPS), tools.commands)


def test_a_signal_is_no_failure(world: World) -> None:
    world.compact()
    stop = Stop()
    with pytest.raises(Stopped):
        run_compact(OPTIONS, outside(world, Tools(code=-15, meanwhile=stop.set), stop))
    assert "Running" == world.status(COMPACT_BACKUPS)["state"]
    assert "backoffRetryStatus" not in world.status(COMPACT_BACKUPS)


def test_a_compaction_killed_at_any_call_is_completed() -> None:
    def work(given: Outside) -> None:
        life = getattr(given.client, "_life", Life(1 << 30, after=False))
        run_compact(OPTIONS, replace(given, launcher=Tools(life=life)))

    def check(world: World) -> None:
        status = world.status(COMPACT_BACKUPS)
        assert ("Complete", "1900") == (status["state"], status["endTs"])

    assert 12 < survive(lambda world: world.compact(), work, check)


@pytest.mark.rule("backup-7.10")
def test_numbers_may_be_texts_and_names_in_any_case() -> None:
    line = {"Message": "Finishing compaction.", "META_COMPLETED": "1", "meta_total": "x", "bytes_compacted": None}
    progress = read_line(json.dumps(line)).progress
    assert "[READ_META(1/0),COMPACT_WORK(0/0)]" == str(progress)
    assert 0 == read_line("[1, 2]").input_until


SHARD: dict[str, Any] = {"mode": "sharded", "shardCount": 3}


def of_index(world: World, index: str, tools: Tools) -> Outside:
    made = outside(world, tools)
    return replace(made, environ={**made.environ, "JOB_COMPLETION_INDEX": index})


@pytest.mark.rule("CMP-10", "CMP-13")
def test_a_shard_is_compacted_and_reports_no_end_of_the_whole(world: World) -> None:
    world.compact(**SHARD, name="region-2", physicalFileCacheCapacity=" 10Gi ", endTs=None)
    tools = Tools(meanwhile=lambda: world.clock.step(5.0))
    run_compact(OPTIONS, of_index(world, "1", tools))
    assert {"state": "Running"} == world.status(COMPACT_BACKUPS)
    expected = (
        "--from 1000 -N 4 --name region-2 --cal-shift-ts --physical-file-cache-capacity 10Gi --shard 2/3 "
        "--minimal-compaction-size 0"
    )
    assert expected == " ".join(tools.commands[1][8:])


@pytest.mark.rule("CMP-10")
def test_a_shard_caches_nothing_by_default_and_a_compaction_passes_its_name(world: World) -> None:
    world.compact(**SHARD)
    tools = Tools()
    run_compact(OPTIONS, of_index(world, "0", tools))
    words = "--from 1000 --until 2000 -N 4 --cal-shift-ts --physical-file-cache-capacity 0 --shard 1/3"
    assert [*words.split(), "--minimal-compaction-size", "0"] == tools.commands[1][8:]
    world.client.patch(COMPACT_BACKUPS, NAME, NAMESPACE, {"spec": {"mode": "", "shardCount": None, "name": "x"}})
    run_compact(OPTIONS, outside(world, tools))
    assert "--from 1000 --until 2000 -N 4 --name x" == " ".join(tools.commands[3][8:])


@pytest.mark.rule("CMP-9")
@pytest.mark.parametrize("index", ["", "x", "3", "-1"])
def test_a_pod_without_a_valid_index_compacts_nothing(world: World, index: str) -> None:
    world.compact(**SHARD)
    tools = Tools()
    with pytest.raises(JobFailed, match="is no index of 3 shards"):
        run_compact(OPTIONS, of_index(world, index, tools))
    assert [] == tools.commands


@pytest.mark.rule("CMP-13")
def test_a_failed_shard_is_named_and_another_one_that_starts_keeps_its_message(world: World) -> None:
    world.compact(**SHARD)
    with pytest.raises(JobFailed):
        run_compact(OPTIONS, of_index(world, "2", Tools(lines=["no such file"], code=1)))
    expected = {"state": "Running", "message": "shard 2: tikv-ctl ended with exit code 1: no such file"}
    assert expected == world.status(COMPACT_BACKUPS)
    run_compact(OPTIONS, of_index(world, "0", Tools()))
    assert expected == world.status(COMPACT_BACKUPS)
