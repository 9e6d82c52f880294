"""Waiting tells each state once and ends in time."""

from __future__ import annotations

import pytest

from slipway_client.errors import WaitTimedOut
from slipway_client.waiting import wait_for


def test_each_state_is_told_once_and_pauses_grow() -> None:
    states = iter(["queued", "queued", "running", "running", "done"])
    told: list[str] = []
    pauses: list[float] = []

    last = wait_for(
        lambda: next(states),
        lambda state: state == "done",
        seconds=60,
        describe=str,
        on_change=told.append,
        sleep=pauses.append,
    )

    assert last == "done"
    assert told == ["queued", "running", "done"]
    assert pauses == pytest.approx([0.5, 0.65, 0.845, 1.0985])


def test_the_end_of_waiting_says_what_is_still_in_progress() -> None:
    with pytest.raises(WaitTimedOut, match=r"After 0 s: running\. It is still in progress"):
        wait_for(lambda: "running", lambda _: False, seconds=0, describe=str)
