"""The world of delivery tests, with one of everything that an address of the API can name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from deployments.domain.states import Environment
from deployments.gateways import artifacts
from deployments.gateways.artifacts import S3Store, StoredObject
from deployments.models import Alias, Deployment, EmergencyReview, Rollout
from deployments.services import (
    changes,
    golden_requests,
    pipelines,
    policies,
    rollout_templates,
)
from deployments.services.pipelines import PipelineDraft
from deployments.services.policies import RuleDraft
from portal.accounts import delegations, tokens
from portal.core import clock
from tests.deployments.delivery.conftest import World, cluster_calls, moving_clock, world
from tests.deployments.delivery.store import MemoryStore

__all__ = ["World", "cluster_calls", "moving_clock", "world"]
STEPS = [{"weight": 20, "soak_seconds": 0, "min_requests": 0}]


@dataclass
class FullWorld:
    """`names` holds, by path parameter, what exists and belongs to team vision."""

    world: World
    deployment: Deployment
    names: dict[str, Any]


class LaidOut:
    """The real store, in which the versions of the world seem to lie as well."""

    def __init__(self, real: S3Store, seeming: MemoryStore) -> None:
        self._real, self._seeming = real, seeming

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def head(self, key: str, version_id: str = "") -> StoredObject:
        seems = key in self._seeming.sizes
        return self._seeming.head(key) if seems else self._real.head(key, version_id)

    def list_keys(self, prefix: str) -> list[str]:
        return self._seeming.list_keys(prefix) or self._real.list_keys(prefix)


@pytest.fixture
def full_world(world: World, s3_store: S3Store, monkeypatch: pytest.MonkeyPatch) -> FullWorld:
    store = LaidOut(s3_store, world.store)
    monkeypatch.setattr(artifacts, "store", lambda: store)
    deployment = world.serving()
    rule = policies.make(
        actor=world.admin,
        draft=RuleDraft(name="nobody asks for these", team="vision", kinds=("start",), needed=2),
    )
    review = EmergencyReview.objects.create(
        change=deployment.changes.get(),
        opened_by=world.lead,
        reason="it was down",
        opened_at=clock.now(),
        due_at=clock.now(),
    )
    change = changes.request_canary(
        actor=world.member, deployment_id=deployment.pk, version_id=world.version2.pk, steps=STEPS
    )
    world.approved(change)
    Alias.objects.create(
        model=world.version1.model, name="champion", version=world.version1, moved_at=clock.now()
    )
    token = tokens.make(actor=world.admin, name="notebook", days=7)
    output = {"name": "y", "datatype": "FP32", "shape": [1], "data": [2.0]}
    golden = golden_requests.save(
        actor=world.member,
        team_slug="vision",
        model_name=world.version1.model.name,
        name="one",
        request={"inputs": [{**output, "name": "x"}]},
        expected=[output],
    )
    template = rollout_templates.save(
        actor=world.member, team=world.team, name="usual", steps=STEPS, plan={}
    )
    step = {"deployment": deployment.name}
    nodes = [{"name": "root", "kind": "ensemble", "steps": [step, {**step, "name": "again"}]}]
    pipeline_change = pipelines.request_create(
        actor=world.member,
        draft=PipelineDraft(
            team="vision",
            cluster_id=world.cluster_id,
            environment=Environment.PRODUCTION,
            name="both",
            spec={"nodes": nodes},
        ),
    )
    delegation = delegations.name_delegate(
        actor=world.lead,
        team=world.team,
        username="member",
        starts_at=clock.now() + timedelta(days=1),
        ends_at=clock.now() + timedelta(days=2),
        reason="away",
    )
    names = {
        "slug": "vision",
        "team": "vision",
        "name": world.version1.model.name,
        "number": 1,
        "alias": "champion",
        "username": "member",
        "version_id": world.version1.pk,
        "cluster_id": world.cluster_id,
        "deployment_id": deployment.pk,
        "change_id": change.pk,
        "rollout_id": Rollout.objects.get().pk,
        "template_id": template.pk,
        "rule_id": rule.pk,
        "review_id": review.pk,
        "token_id": token.row.pk,
        "golden_id": golden.pk,
        "pipeline_id": pipeline_change.pipeline_id,
        "pipeline_change_id": pipeline_change.pk,
        "delegation_id": delegation.pk,
    }
    return FullWorld(world, deployment, names)
