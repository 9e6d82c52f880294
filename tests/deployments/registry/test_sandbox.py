from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import psutil
import pytest

from deployments.registry.gateways import sandbox, sandbox_server
from deployments.registry.gateways.sandbox import (
    Broken,
    DeathCause,
    Died,
    Finished,
    Refused,
    SandboxLimits,
)
from deployments.registry.gateways.sandbox_artifact import Access
from tests.waiting import PATIENCE_SECONDS, wait_for

TASKS = "tests.deployments.registry.sandbox_tasks"
LIMITS = SandboxLimits(memory_bytes=512 * 2**20, cpu_seconds=20, wall_seconds=60)


def run(task: str, argument: object = None, *, limits: SandboxLimits = LIMITS) -> sandbox.Outcome:
    return sandbox.run(f"{TASKS}:{task}", argument, limits=limits)


def is_running(pid: int) -> bool:
    """A process that was not reaped yet is no longer running."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_task_gets_json_and_answers_json() -> None:
    assert run("double", {"number": 21}) == Finished({"doubled": 42})


def test_the_process_has_a_group_limits_and_no_secrets() -> None:
    outcome = run("describe_process")

    assert isinstance(outcome, Finished)
    limits = outcome.value
    assert limits["pid"] == limits["group"] != os.getpid()
    assert {"AWS_SECRET_ACCESS_KEY", "SLIPWAY_SECRET_KEY"} <= set(os.environ)
    assert not [name for name in limits["environment"] if name.startswith(("AWS", "SLIPWAY"))]
    assert (limits["memory"], limits["core"]) == (512 * 2**20, 0)
    assert limits["has_django"] is False
    assert limits["folder"] == []


def test_a_refusal_keeps_its_message() -> None:
    assert run("refuse") == Refused("It is no model. Export it again.")


def test_what_a_task_did_not_foresee_is_named() -> None:
    assert run("fail") == Broken("OverflowError: int too large to convert")


def test_what_a_library_prints_is_no_answer() -> None:
    assert run("print_a_lot") == Finished("real")


def test_an_answer_is_bounded() -> None:
    assert run("answer_too_much") == Broken("the result is larger than 32 MiB")


def test_a_file_is_bounded() -> None:
    outcome = run("write_a_large_file")

    assert isinstance(outcome, Broken)
    assert "File too large" in outcome.cause


def test_memory_is_bounded() -> None:
    assert run("take_memory") == Died(DeathCause.MEMORY, "it needed more than 512 MiB of memory")


def test_an_out_of_memory_kill_is_reported_as_memory() -> None:
    assert run("be_killed") == Died(DeathCause.MEMORY, "it needed more than 512 MiB of memory")


def test_processor_time_is_bounded() -> None:
    outcome = run("spin", limits=replace(LIMITS, cpu_seconds=1))

    assert outcome == Died(DeathCause.TIME, "it used more than 1 seconds of CPU time")


def test_wall_time_is_bounded() -> None:
    outcome = run("sleep", limits=replace(LIMITS, wall_seconds=1))

    assert outcome == Died(DeathCause.TIME, "it took longer than 1 seconds")


def test_the_time_of_a_slow_store_is_not_the_childs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of many parts must not die of a store that takes long for each."""
    hour = iter(range(3600, 10**6, 3600))
    late = [0]
    monkeypatch.setattr(
        sandbox, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + late[0])
    )

    class Slow:
        sizes: ClassVar = {"m": 8}

        def read(self, path: str, start: int, count: int) -> bytes:
            late[0] = next(hour)
            return b"contents"[start : start + count]

    outcome = sandbox.run(
        f"{TASKS}:read_by_bytes", {"path": "m"}, limits=LIMITS, access=Access(Slow())
    )

    assert outcome == Finished("contents")
    assert late[0] == 8 * 3600 > LIMITS.wall_seconds


def test_a_crash_is_reported_with_its_signal() -> None:
    outcome = run("crash")

    assert outcome == Died(DeathCause.CRASH, "the reader process crashed (SIGSEGV)")


def test_an_end_without_an_answer_is_a_crash() -> None:
    outcome = run("exit_quietly")

    assert outcome == Died(DeathCause.CRASH, "the reader process returned no result")


@pytest.mark.parametrize(
    ("task", "wall_seconds"), [("leave_a_child", 60), ("start_a_child_and_sleep", 3)]
)
def test_the_whole_group_is_killed(tmp_path: Path, task: str, wall_seconds: float) -> None:
    path = tmp_path / "pid"

    run(task, str(path), limits=replace(LIMITS, wall_seconds=wall_seconds))

    pid = int(path.read_text())
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=5)
    assert not is_running(pid)


class Stop(Exception):
    pass


def test_the_caller_may_stop_it_at_any_time() -> None:
    run("double", {"number": 1})  # starts the server, which stays
    (server,) = sandbox_server._servers
    before = set(psutil.Process(server._process.pid).children())

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):
        sandbox.run(f"{TASKS}:sleep", None, limits=LIMITS, while_running=stop)

    assert set(psutil.Process(server._process.pid).children()) == before == set()


def test_it_ends_with_the_worker(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    code = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'\n"
        "from deployments.registry.gateways import sandbox\n"
        "limits = sandbox.SandboxLimits(2**30, 60, 60)\n"
        f"sandbox.run('{TASKS}:start_a_child_and_sleep', sys.argv[1], limits=limits)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, str(path)])
    wait_for("start of the child", lambda: path.exists() and path.read_text())
    (server,) = psutil.Process(worker.pid).children()
    (child,) = server.children()
    started = psutil.Process(int(path.read_text()))

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    psutil.wait_procs([server, child, started], timeout=PATIENCE_SECONDS)
    assert not any(is_running(process.pid) for process in (server, child, started))


def test_a_server_that_was_killed_is_started_again() -> None:
    run("double", {"number": 1})
    (killed,) = sandbox_server._servers
    killed._process.kill()

    assert run("double", {"number": 2}) == Finished({"doubled": 4})
    assert sandbox_server._servers != [killed]


def test_a_forked_copy_of_the_worker_has_a_server_of_its_own() -> None:
    run("double", {"number": 1})
    (server,) = sandbox_server._servers

    pid = os.fork()
    if pid == 0:
        is_own = run("double", {"number": 2}) == Finished({"doubled": 4})
        os._exit(0 if is_own and sandbox_server._servers != [server] else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert run("double", {"number": 3}) == Finished({"doubled": 6})


def test_a_task_leaves_nothing_behind_for_the_next() -> None:
    assert run("remember", 1) == Finished([1])
    assert run("remember", 2) == Finished([2])


def test_libraries_that_are_loaded_before_the_fork_start_no_threads() -> None:
    run("double", {"number": 1})
    (server,) = sandbox_server._servers

    assert psutil.Process(server._process.pid).num_threads() == 1
    assert run("list_libraries") == Finished(["numpy", "onnx", "treelite"])


def test_processes_of_several_threads_run_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda n: run("double", {"number": n}), range(8)))

    assert outcomes == [Finished({"doubled": 2 * n}) for n in range(8)]


def test_there_is_no_network_where_the_kernel_allows_that() -> None:
    if subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode:
        pytest.skip("this kernel allows no unprivileged network namespaces")
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert run("connect", server.getsockname()[1]) == Finished("OSError")


def test_limits_follow_the_size_of_the_file() -> None:
    small, large = sandbox.limits_for(0), sandbox.limits_for(2 * 2**30)

    assert (small.memory_bytes, small.cpu_seconds, small.wall_seconds) == (2**30, 30, 150)
    assert (large.memory_bytes, large.cpu_seconds, large.wall_seconds) == (13 * 2**30, 150, 750)
