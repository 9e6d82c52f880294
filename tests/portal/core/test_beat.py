"""Beat's scheduler sends each message when it is due, and does nothing meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import schedule

from portal.beat_scheduler import FixedScheduler

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
at = [START]


def now() -> datetime:
    """A function of the module, because the scheduler stores its schedule."""
    return at[0]


class Recording(FixedScheduler):
    sent: list[tuple[str, float]]
    # No broker.
    producer: Any = None

    def apply_async(self, entry: ScheduleEntry, *args: Any, **options: Any) -> Any:
        self.sent.append((str(entry.task), (now() - START).total_seconds()))
        return None


def test_a_message_is_sent_when_it_is_due_and_nothing_is_read_in_between(tmp_path: Path) -> None:
    at[0] = START
    app = Celery("test", set_as_current=False)
    app.conf["beat_schedule"] = {
        name: {"task": name, "schedule": schedule(timedelta(seconds=seconds), nowfun=now)}
        for name, seconds in (("three", 3), ("five", 5))
    }
    scheduler = Recording(app=app, schedule_filename=str(tmp_path / "schedule"))
    scheduler.sent, passes = [], 0

    while (now() - START).total_seconds() <= 30:
        passes += 1
        assert passes < 100, "it asks without waiting"
        # As the service does, which does not sleep where it is to wait for nothing.
        at[0] += timedelta(seconds=max(0.0, scheduler.tick()))

    scheduler.close()
    assert sorted(scheduler.sent) == sorted(
        [
            *(("three", float(second)) for second in range(3, 31, 3)),
            *(("five", float(second)) for second in range(5, 31, 5)),
        ]
    )
    assert passes <= 2 * len(scheduler.sent) + 1
