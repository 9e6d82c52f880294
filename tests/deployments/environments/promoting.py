"""What tests of promotion share: rules, a version that serves in staging, and the request of production."""

from __future__ import annotations

from typing import Any

from deployments.changes.services import requests
from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.services import environment_rules
from deployments.health.services import watch
from deployments.models import (
    ChangeRequest,
    Deployment,
)
from tests.deployments import golden_requests as golden
from tests.deployments.world import World


def protect(world: World, **rules: Any) -> None:
    environment_rules.change(
        actor=world.admin,
        environment="production",
        team=None,
        rules=EnvironmentRules(**{"promoted_from": "staging", **rules}),
    )


def staged(world: World) -> Deployment:
    """Version 1 serves in staging, doubling its input."""
    deployment = world.play(
        "staged", lambda: golden.serving_with_signature(world, environment="staging")
    )
    world.cluster.pods = golden.Pods({1: golden.double})
    return deployment


def request_production(world: World, **changed: Any) -> ChangeRequest:
    return requests.request_deploy(actor=world.member, draft=world.draft("live", **changed))


def check_golden(world: World) -> None:
    """The quality watch comes round."""
    watch.begin_missing()
    world.clock.move(1000)
    watch.sweep()


def checks_of(change: ChangeRequest) -> dict[str, tuple[bool | None, str]]:
    names = ("Promotion", "Golden requests")
    return {
        row["name"]: (row["ok"], row["detail"]) for row in change.checks if row["name"] in names
    }
