from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from deployments.registry.gateways import sandbox
from deployments.registry.gateways.sandbox import (
    Broken,
    DeathCause,
    Died,
    Finished,
    Limits,
    Refused,
)

TASKS = "tests.deployments.registry.sandbox_tasks"
LIMITS = Limits(memory_bytes=512 * 2**20, cpu_seconds=20, wall_seconds=60)


def run(task: str, argument: object = None, *, limits: Limits = LIMITS) -> sandbox.Outcome:
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
    before = set(psutil.Process().children())

    def stop() -> None:
        raise Stop

    with pytest.raises(Stop):
        sandbox.run(f"{TASKS}:sleep", None, limits=LIMITS, while_running=stop)

    assert set(psutil.Process().children()) == before


def test_it_ends_with_the_worker(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    code = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'\n"
        "from deployments.registry.gateways import sandbox\n"
        "limits = sandbox.Limits(2**30, 60, 60)\n"
        f"sandbox.run('{TASKS}:start_a_child_and_sleep', sys.argv[1], limits=limits)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", code, str(path)])
    until = time.monotonic() + 30
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < until
        time.sleep(0.05)
    (child,) = psutil.Process(worker.pid).children()

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    psutil.wait_procs([child], timeout=10)
    assert not is_running(child.pid)
    os.kill(int(path.read_text()), signal.SIGKILL)


def test_there_is_no_network_where_the_kernel_allows_that() -> None:
    if subprocess.run(["unshare", "--user", "--net", "true"], check=False).returncode:
        pytest.skip("this kernel allows no unprivileged network namespaces")
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert run("connect", server.getsockname()[1]) == Finished("OSError")


def test_limits_follow_the_size_of_the_file() -> None:
    small, large = sandbox.limits_for(0), sandbox.limits_for(2 * 2**30)

    assert (small.memory_bytes, small.cpu_seconds, small.wall_seconds) == (2**30, 30, 150)
    assert (large.memory_bytes, large.cpu_seconds, large.wall_seconds) == (13 * 2**30, 150, 750)
