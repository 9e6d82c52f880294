"""Tests that begin with a world get copies of scenes, with all the fixtures that tests have."""

from __future__ import annotations

import pytest
from django.db import connection

from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="scenes are kept there only"),
]


def test_no_fixture_of_all_tests_has_their_scenes_made_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one did that patched a part of the portal by the `monkeypatch` of the test."""
    assert world.stage is not None
    assert world.stage.is_untouched()

    monkeypatch.setattr(World, "serving", World.serving)
    assert not world.stage.is_untouched()
