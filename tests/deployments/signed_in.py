"""People who are signed in, and the refusal that every test checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from deployments.models import Deployment, Rollout
from portal.accounts.models import User
from tests.deployments import canaries
from tests.deployments.world import World, cluster_calls, moving_clock, world

__all__ = ["cluster_calls", "moving_clock", "world"]

STEPS = [
    {"weight": 10, "soak_seconds": 60, "min_requests": 0},
    {"weight": 50, "soak_seconds": 0, "min_requests": 0},
]
HTMX: dict[str, Any] = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def signed_in() -> Callable[[User], Client]:
    def sign_in(user: User) -> Client:
        client = Client(raise_request_exception=True)
        client.force_login(user)
        return client

    return sign_in


def start_canary(world: World) -> tuple[Deployment, Rollout]:
    """A serving deployment whose canary has its first step's weight."""
    return canaries.start(world, STEPS)
