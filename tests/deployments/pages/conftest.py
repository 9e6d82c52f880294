"""A canary whose first step has soaked."""

from __future__ import annotations

import pytest

from deployments.models import Rollout
from tests.deployments.canaries import serve
from tests.deployments.signed_in import start_canary
from tests.deployments.world import World


@pytest.fixture
def rollout(world: World) -> Rollout:
    return world.play("soaked canary", lambda: _soak(world))


def _soak(world: World) -> Rollout:
    deployment, started = start_canary(world)
    world.clock.move(61)
    serve(world, deployment, 10)
    started.refresh_from_db()
    return started
