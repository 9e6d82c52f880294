"""Hours of callers as the ledger's selectors read them, whatever callers are named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fleet.costs.selectors.callers import CountedHour, read_counted_hours
from fleet.models import CallerHour

pytestmark = pytest.mark.django_db
_START = datetime(2026, 3, 1, 10, tzinfo=UTC)
_HOUR = timedelta(hours=1)


def _write(
    caller: str, requests: int, *, at: int = 0, observed_ms: int = 0, of: str = "detector"
) -> None:
    CallerHour.objects.create(
        team_slug="vision",
        deployment=of,
        caller=caller,
        hour=_START + at * _HOUR,
        requests=requests,
        observed_ms=observed_ms,
    )


def _read(deployment: str = "") -> dict[tuple[str, int], CountedHour]:
    counted = read_counted_hours(
        team_slug="vision", start=_START, end=_START + 9 * _HOUR, deployment=deployment
    )
    return {(name, (hour - _START) // _HOUR): found for (name, hour), found in counted.items()}


def test_each_hour_has_its_callers_and_whether_they_were_counted() -> None:
    names = ['say "hi"', "back\\slash", "ü ☃", "null", "a'b;--"]
    for place, name in enumerate(names):
        _write(name, place + 1)
    _write("", 0, observed_ms=3_600_000)
    _write("silent", 0)
    _write("", 0, at=1, observed_ms=60_000)
    _write("ci", 2**40, at=2)
    _write("ci", 7, at=9)
    _write("ci", 5, of="other")

    assert _read("detector") == {
        ("detector", 0): CountedHour({n: i + 1 for i, n in enumerate(names)}, is_counted=True),
        ("detector", 1): CountedHour({}, is_counted=True),
        ("detector", 2): CountedHour({"ci": 2**40}, is_counted=False),
    }
    assert _read()["other", 0] == CountedHour({"ci": 5}, is_counted=False)
    assert _read().keys() == {*_read("detector"), ("other", 0)}
