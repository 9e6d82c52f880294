"""Steps of a rolling update."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway_localcluster.controllers import rolling
from slipway_localcluster.controllers.rolling import SetSize, Strategy


def _deployment(replicas: int, strategy: dict | None = None) -> dict:  # type: ignore[type-arg]
    return {"spec": {"replicas": replicas, **({"strategy": strategy} if strategy else {})}}


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable"), [(1, 1, 0), (3, 1, 0), (4, 1, 1), (10, 3, 2)]
)
def test_default_limits_round_surge_up_and_unavailable_down(
    replicas: int, surge: int, unavailable: int
) -> None:
    assert rolling.strategy_of(_deployment(replicas)) == Strategy(surge, unavailable)


def test_limits_are_never_both_zero() -> None:
    limits = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}

    assert rolling.strategy_of(_deployment(2, limits)) == Strategy(0, 1)


def test_recreate_ends_the_old_pods_first() -> None:
    strategy = rolling.strategy_of(_deployment(2, {"type": "Recreate"}))
    old = SetSize("old", 2, 2, 2)

    first = rolling.next_sizes(2, strategy, SetSize("new", 0, 0, 0), (old,))
    waiting = rolling.next_sizes(2, strategy, SetSize("new", 0, 0, 0), (SetSize("old", 0, 1, 0),))
    done = rolling.next_sizes(2, strategy, SetSize("new", 0, 0, 0), (SetSize("old", 0, 0, 0),))

    assert first == {"new": 0, "old": 0}
    assert waiting == {"new": 0, "old": 0}
    assert done == {"new": 2, "old": 0}


def test_unavailable_pods_are_removed_first() -> None:
    old = SetSize("old", 2, 2, 0)

    sizes = rolling.next_sizes(2, Strategy(1, 0), SetSize("new", 1, 1, 0), (old,))

    assert sizes == {"new": 1, "old": 0}


@given(
    replicas=st.integers(1, 8),
    surge=st.integers(0, 4),
    unavailable=st.integers(0, 4),
    order=st.lists(st.integers(0, 1), max_size=80),
)
@settings(max_examples=150, deadline=None)
def test_an_update_stays_within_its_limits_and_ends(
    replicas: int, surge: int, unavailable: int, order: list[int]
) -> None:
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = rolling.strategy_of(
        _deployment(replicas, {"type": "RollingUpdate", "rollingUpdate": limits})
    )
    new, old = SetSize("new", 0, 0, 0), SetSize("old", replicas, replicas, replicas)

    # Pods start in the order of `order`; the rest starts at the end.
    for starts in [*order, *([1] * 6 * replicas)]:
        sizes = rolling.next_sizes(replicas, strategy, new, (old,))
        old = SetSize("old", sizes["old"], sizes["old"], min(old.available, sizes["old"]))
        available = min(new.available + starts, sizes["new"])
        new = SetSize("new", sizes["new"], sizes["new"], available)
        assert new.desired + old.desired <= replicas + strategy.max_surge
        assert new.available + old.available >= replicas - strategy.max_unavailable

    assert (new.available, old.desired) == (replicas, 0)
