"""When lines of a log were written, as the node agent notices it."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from slipway_localcluster.controllers import log_times
from slipway_localcluster.controllers.log_times import LogFile, LogTimes


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "triton.log"


def _write(log: Path, text: str, at: int) -> None:
    with log.open("a") as file:
        file.write(text)
    os.utime(log, (at, at))


def _times(log: Path) -> list[tuple[str, float]]:
    with closing(LogFile(log)) as file:
        return _read(file)


def _read(file: LogFile) -> list[tuple[str, float]]:
    return [(line.text, line.at.timestamp()) for line in file.lines()]


def test_a_line_has_the_time_of_the_pass_that_noticed_its_beginning(log: Path) -> None:
    times = LogTimes(log.parent)
    _write(log, "loading\nre", 100)
    times.note()
    times.note()
    _write(log, "ady\nserving\r\n", 200)
    times.note()
    _write(log, "late", 300)

    assert _times(log) == [
        ("loading\n", 100),
        ("ready\n", 100),
        ("serving\r\n", 200),
        ("late", 300),
    ]
    assert log.with_name("triton.log.times").read_text() == "10 100.000000\n23 200.000000\n"


def test_times_go_with_a_log_that_is_kept_and_go_on_after_a_restart_of_the_agent(log: Path) -> None:
    _write(log, "first\n", 100)
    LogTimes(log.parent).note()
    _write(log, "second\n", 200)
    LogTimes(log.parent).note()
    kept = log.with_suffix(".previous.log")

    log_times.keep_as(log, kept)
    _write(log, "new\n", 300)
    LogTimes(log.parent).note()

    assert _times(kept) == [("first\n", 100), ("second\n", 200)]
    assert _times(log) == [("new\n", 300)]


def test_a_log_that_begins_anew_has_times_of_its_own(log: Path) -> None:
    times = LogTimes(log.parent)
    _write(log, "longer than the next one\n", 100)
    times.note()
    log.write_text("")
    _write(log, "short\n", 200)
    times.note()

    assert _times(log) == [("short\n", 200)]


def test_a_row_that_a_crash_cut_off_is_left_out(log: Path) -> None:
    _write(log, "one\ntwo\n", 300)
    log.with_name("triton.log.times").write_text("4 100\n8 2")

    assert _times(log) == [("one\n", 100), ("two\n", 300)]


def test_an_open_log_is_read_to_its_end_after_its_pod_is_gone(log: Path) -> None:
    pod = log.parent / "pod"
    pod.mkdir()
    log = pod / log.name
    _write(log, "serving\n", 100)
    LogTimes(pod).note()
    with closing(LogFile(log)) as file:
        assert _read(file) == [("serving\n", 100)]
        assert not file.has_ended()
        _write(log, "Signal (15) received\n", 200)
        shutil.rmtree(pod)

        assert file.has_ended()
        assert _read(file) == [("serving\n", 100), ("Signal (15) received\n", 200)]


def test_the_log_of_the_run_before_has_ended(log: Path) -> None:
    _write(log, "crashed\n", 100)
    LogTimes(log.parent).note()
    os.utime(log, (200, 200))
    with closing(LogFile(log, is_previous=True)) as file:
        assert file.has_ended()
        assert _read(file) == [("crashed\n", 100)]


def test_an_open_log_ends_when_its_container_runs_anew(log: Path) -> None:
    _write(log, "first\n", 100)
    with closing(LogFile(log)) as file:
        assert not file.has_ended()
        _write(log, "crashed\n", 200)
        log_times.keep_as(log, log.with_suffix(".previous.log"))
        assert file.has_ended()
        _write(log, "second\n", 300)

        assert file.has_ended()
        assert [line.text for line in file.lines()] == ["first\n", "crashed\n"]
