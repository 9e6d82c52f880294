"""A reconcile pass and a preflight parse each spec once and render each revision and the route once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from deployments.changes.services import decisions, requests
from deployments.delivery.services import reconcile
from deployments.lifecycle.services import apply_changes
from deployments.manifests.domain import http_route
from deployments.manifests.domain import revision as revision_manifests
from deployments.manifests.selectors import rendering
from deployments.models import Deployment
from deployments.preflight.services import preflight
from tests.deployments.world import World

pytestmark = pytest.mark.django_db

ONE_REVISION = {"build_own": 1, "http_route": 1, "context_of": 1, "spec_of": 1}


@pytest.fixture
def renderings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls so far, by function."""
    calls: Counter[str] = Counter()

    def count(module: Any, name: str) -> None:
        function = getattr(module, name)

        def counted(*args: Any, **options: Any) -> Any:
            calls[name] += 1
            return function(*args, **options)

        monkeypatch.setattr(module, name, counted)

    count(revision_manifests, "build_own")
    count(http_route, "http_route")
    count(rendering, "context_of")
    count(rendering, "spec_of")
    return calls


def test_the_pass_that_pushes_a_revision_and_its_route_renders_both_once(
    world: World, renderings: Counter[str]
) -> None:
    change = requests.request_deploy(actor=world.member, draft=world.draft())
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)
    apply_changes.sweep()
    assert change.deployment is not None
    renderings.clear()

    assert reconcile.reconcile(deployment_id=change.deployment.pk)

    assert world.cluster.names("InferenceService") == ["detector-r1"]
    assert world.cluster.weights("vision", "detector") == {"detector-r1-predictor": 100}
    assert renderings == ONE_REVISION


def test_the_pass_that_compares_all_objects_renders_once(
    world: World, renderings: Counter[str]
) -> None:
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(objects_checked_at=None)
    renderings.clear()

    assert reconcile.reconcile(deployment_id=deployment.pk)

    assert renderings == ONE_REVISION


def test_a_preflight_with_dry_run_evidence_and_yaml_renders_once(
    world: World, renderings: Counter[str]
) -> None:
    result = preflight.check(actor=world.member, draft=world.draft())

    assert "kind: InferenceService" in result.manifests
    assert "Server dry-run" in {check.name for check in result.checks}
    assert renderings == {"build_own": 1, "http_route": 1}
