"""What was made a moment ago serves whoever asks for the same; without the cache each makes it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from redis.exceptions import ConnectionError as NoConnection

from portal.core.cache import recent


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        return f"made {self.calls}"


def test_it_is_made_once_for_a_key() -> None:
    make = Maker()

    assert recent(("a", 1), make, seconds=60) == "made 1"
    assert recent(("a", 1), make, seconds=60) == "made 1"
    assert recent(("a", 2), make, seconds=60) == "made 2"


def test_it_is_forgotten_after_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, int] = {}
    monkeypatch.setattr(cache, "set", lambda name, value, seconds: kept.update({name: seconds}))

    recent(("a",), Maker(), seconds=10)

    assert list(kept.values()) == [10]


def test_what_is_in_a_key_is_not_readable_in_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr(cache, "set", lambda name, value, seconds: names.append(name))

    recent(("/fleet?pool=secret \n\x00" * 100,), Maker(), seconds=10)

    assert "secret" not in names[0]
    assert len(names[0]) < 100


@pytest.mark.parametrize("fault", [NoConnection("gone"), TimeoutError("slow"), OSError("broken")])
def test_without_the_cache_it_is_made_each_time(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fail(*_args: Any, **_more: Any) -> Any:
        raise fault

    monkeypatch.setattr(cache, "get", fail)
    monkeypatch.setattr(cache, "set", fail)
    make = Maker()

    assert recent(("a",), make, seconds=60) == "made 1"
    assert recent(("a",), make, seconds=60) == "made 2"


def test_a_failure_is_not_kept() -> None:
    def fail() -> str:
        raise ValueError("no figures")

    with pytest.raises(ValueError, match="no figures"):
        recent(("a",), fail, seconds=60)
    assert recent(("a",), Maker(), seconds=60) == "made 1"
