"""Lines of logs: levels, merging by time, the filter, and short names of pods."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.delivery.domain import log_lines
from deployments.delivery.domain.log_lines import LogLevel, LogLine

AT = datetime(2026, 11, 29, 9, 41, 22, tzinfo=UTC)
NONE, DEBUG, INFO, WARNING, ERROR = LogLevel


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("I1129 09:41:22.123456 1 server.cc:676] started", INFO),
        ("W1129 09:41:22.123456 1 metrics.cc:500] no GPU", WARNING),
        ("E1123 01:09:17.488087 2971 model_lifecycle.cc:642] \"failed to load 'rows'\"", ERROR),
        ("F1129 09:41:22.123456 1 main.cc:1] aborted", ERROR),
        ("2026-11-29T09:41:22Z I 1 server.cc:676] started", INFO),
        ("2026-11-29T09:41:22Z E 1 server.cc:676] failed", ERROR),
        ("INFO 11-29 09:41:22 [core.py:58] Initializing", INFO),
        ("(EngineCore_DP0 pid=212) INFO 10-06 12:00:03 [gpu_model_runner.py:2338] Starting", INFO),
        ("(APIServer pid=1) WARNING 11-29 09:41:22 [config.py:1] slow", WARNING),
        ("(EngineCore pid=7) ERROR 11-29 09:41:22 [core.py:1] out of memory", ERROR),
        ("DEBUG 11-29 09:41:22 [x.py:1] y", DEBUG),
        ("INFO:     127.0.0.1:5000 - GET /health 200", INFO),
        ("WARNING:root:disk is full", WARNING),
        ("[ERROR] no such file", ERROR),
        ("CRITICAL out of everything", ERROR),
        ("2026-11-29 09:41:22,123 - server - ERROR - broken", ERROR),
        ("2026-11-29 09:41:22.123 7 kserve WARNING [model_server.py:start():1] x", WARNING),
        ("[2026-11-29 09:41:22 +0000] [7] [INFO] Booting worker", INFO),
        ("[2026-11-29 09:41:22 TP0] Decode batch. #running-req: 1", NONE),
        ("[TensorRT-LLM][WARNING] no tokens", WARNING),
        ("[11/29/2026-09:41:22] [TRT-LLM] [E] failed", ERROR),
        ('{"time": "x", "level": "warn", "msg": "slow"}', WARNING),
        ('{"severity":"ERROR","message":"INFO"}', ERROR),
        ("Traceback (most recent call last):", ERROR),
        ("(EngineCore pid=7) Traceback (most recent call last):", ERROR),
        ("/usr/lib/python3/x.py:12: UserWarning: deprecated", WARNING),
        ("INFORMATION about models", NONE),
        ("Errors are rare", NONE),
        ("an ERROR further on", NONE),
        ('  File "server.py", line 1, in ERROR', NONE),
        ("", NONE),
    ],
)
def test_a_line_begins_with_its_level(text: str, level: LogLevel) -> None:
    assert log_lines.find_level(text) == level


def test_a_line_without_a_level_stays_with_the_line_before_it() -> None:
    text = "starting\nINFO:     up\n\nTraceback (most recent call last):\n  File x\nValueError: y\nI1129 09:41:22.1 1 a] b\n"

    assert [(line.text, line.level) for line in log_lines.parse_log("p", text)] == [
        ("starting", NONE),
        ("INFO:     up", INFO),
        ("", INFO),
        ("Traceback (most recent call last):", ERROR),
        ("  File x", ERROR),
        ("ValueError: y", ERROR),
        ("I1129 09:41:22.1 1 a] b", INFO),
    ]


def test_times_of_the_cluster_are_read_and_colours_removed() -> None:
    text = (
        "2026-11-29T09:41:22.123456789Z \x1b[32mINFO\x1b[0m:     up\n"
        "2026-11-29T10:41:22+01:00 10%\r50%\r100%\r\n"
        "2026-11-29T09:41:22Z \n"
        "2026-11-29T09:41:22 no zone\n"
        "2026-13-41T09:41:22Z no date"
    )

    assert log_lines.parse_log("p", text) == [
        LogLine("p", "INFO:     up", INFO, AT + timedelta(microseconds=123456)),
        LogLine("p", "100%", INFO, AT),
        LogLine("p", "", INFO, AT),
        LogLine("p", "2026-11-29T09:41:22 no zone", INFO, None),
        LogLine("p", "2026-13-41T09:41:22Z no date", INFO, None),
    ]
    assert log_lines.parse_log("p", "") == []
    assert log_lines.parse_log("p", "\n") == [LogLine("p", "")]


def line(pod: str, text: str, seconds: float | None = None) -> LogLine:
    return LogLine(pod, text, NONE, None if seconds is None else AT + timedelta(seconds=seconds))


def test_pods_are_merged_by_time() -> None:
    first = [line("a", "a0", 0), line("a", "a2", 2), line("a", "went back", 1), line("a", "a4", 4)]
    second = [line("b", "before"), line("b", "b1", 1), line("b", "no time"), line("b", "b3", 3)]

    merged = log_lines.merge_logs([first, second])

    assert [one.text for one in merged] == [
        *("before", "a0", "b1", "no time", "a2", "went back", "b3", "a4")
    ]


LOGS = st.lists(
    st.lists(st.tuples(st.sampled_from(["x", "y"]), st.none() | st.integers(-3, 3)), max_size=8),
    max_size=4,
)


@given(LOGS)
def test_merging_keeps_the_order_of_each_pod_and_loses_no_line(
    drawn: list[list[tuple[str, int | None]]],
) -> None:
    logs = [[line(str(pod), *one) for one in log] for pod, log in enumerate(drawn)]

    merged = log_lines.merge_logs(logs)

    assert Counter(merged) == Counter(one for log in logs for one in log)
    for pod, log in enumerate(logs):
        assert [one for one in merged if one.pod == str(pod)] == log


@given(LOGS)
def test_times_of_the_merged_lines_go_back_only_where_a_pod_does(
    drawn: list[list[tuple[str, int | None]]],
) -> None:
    logs = [
        [line(str(pod), text, at) for text, at in sorted(log, key=lambda one: one[1] or 0)]
        for pod, log in enumerate(drawn)
    ]
    with_times = [[one for one in log if one.at is not None] for log in logs]

    times = [one.at for one in log_lines.merge_logs(with_times)]

    assert times == sorted(times, key=lambda at: at or AT)


@given(st.text(), st.text(max_size=3))
def test_the_parts_of_a_line_are_the_line(text: str, search: str) -> None:
    parts = log_lines.split_matches(text, search)

    assert "".join(part for part, _ in parts) == text
    is_found = any(is_match for _, is_match in parts)
    assert is_found == bool(search and log_lines.filter_lines([line("p", text)], search=search))


def test_the_filter_keeps_a_level_and_above_with_the_text() -> None:
    lines = log_lines.parse_log(
        "p", "hello\nDEBUG x\nINFO: Cuda up\nWARNING: cuda slow\nERROR: CUDA lost\n  at gpu.cc"
    )

    def kept(level: LogLevel = NONE, search: str = "") -> list[str]:
        return [one.text for one in log_lines.filter_lines(lines, level=level, search=search)]

    assert len(kept()) == 6
    assert kept(INFO) == [
        *("INFO: Cuda up", "WARNING: cuda slow", "ERROR: CUDA lost", "  at gpu.cc")
    ]
    assert kept(WARNING, "cuda") == ["WARNING: cuda slow", "ERROR: CUDA lost"]
    assert kept(ERROR) == ["ERROR: CUDA lost", "  at gpu.cc"]
    assert kept(search=".") == ["  at gpu.cc"]
    assert kept(search="nothing") == []


def test_each_match_is_marked() -> None:
    assert log_lines.split_matches("a.b A.B", "a.b") == [
        *(("a.b", True), (" ", False), ("A.B", True))
    ]
    assert log_lines.split_matches("<b>", "") == [("<b>", False)]
    assert log_lines.split_matches("", "x") == []


def test_short_names_tell_pods_apart() -> None:
    assert log_lines.shorten_names(["detector-r1-5d8f7-x2x9z", "detector-r2-6c5d4-k8k2m"]) == {
        "detector-r1-5d8f7-x2x9z": "x2x9z",
        "detector-r2-6c5d4-k8k2m": "k8k2m",
    }
    assert log_lines.shorten_names(["detector-r1-0", "detector-r2-0", "detector-r1-1"]) == {
        "detector-r1-0": "r1-0",
        "detector-r2-0": "r2-0",
        "detector-r1-1": "r1-1",
    }
    assert log_lines.shorten_names(["a-0", "0"]) == {"a-0": "a-0", "0": "0"}
    assert log_lines.shorten_names([]) == {}
