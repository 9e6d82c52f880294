"""A data scientist's day: from a file to answers, and from a new version to a canary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

from deployments.models import ChangeRequest, Deployment, Model, ModelVersion
from deployments.registry.gateways import bucket_setup, object_store, sandbox
from deployments.registry.gateways.object_store import S3Store
from deployments.registry.services import verification
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.models import Cluster
from tests.deployments import onnx_models, recorded_sandbox
from tests.deployments.golden_requests import Pods, double
from tests.deployments.world import World
from tests.journeys import visitor
from tests.journeys.visitor import Visit

pytestmark = visitor.marks
ONE = "/vision/deployments/detector"


@pytest.fixture
def bare_team(
    world: World,
    s3_store: S3Store,
    s3_server: str,
    settings: Any,
    live_server: LiveServer,
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    """A team without models, a store for uploads, and a cluster that has everything."""
    policy = settings.CONTENT_SECURITY_POLICY
    directives = policy["DIRECTIVES"] | {"connect-src": ["'self'", s3_server]}
    settings.CONTENT_SECURITY_POLICY = policy | {"DIRECTIVES": directives}
    bucket_setup.prepare(s3_store, region="us-east-1", origins=[live_server.url])
    monkeypatch.setattr(object_store, "store", lambda: s3_store)
    monkeypatch.setattr(sandbox, "run", recorded_sandbox.run)
    ModelVersion.objects.all().delete()
    Model.objects.all().delete()
    features = {name: Feature(is_there=True) for name in FEATURE_DESCRIPTIONS}
    Cluster.objects.update(capabilities=Capabilities(features=features).to_json())
    return world


def test_a_newcomer_has_an_answer_eight_clicks_after_signing_in(
    bare_team: World, visit: Visit, tmp_path: Path
) -> None:
    world, file = bare_team, tmp_path / "detector.onnx"
    file.write_bytes(onnx_models.linear())
    scientist = visit(world.member, "/vision", theme="light", width=1280, has_clock=True)
    scientist.click("Upload the first version", role="link")
    with scientist.page.expect_file_chooser() as chooser:
        scientist.page.locator("#drop").click()
    chooser.value.set_files(file)
    expect(scientist.page.locator("[name=model]")).to_have_value("detector")
    scientist.click("Upload", exact=True)
    verify = scientist.page.locator("#verification")
    expect(verify).to_have_attribute("data-state", "verifying")
    verification.advance(ModelVersion.objects.get().pk)
    expect(verify).to_have_attribute("data-state", "ready")
    scientist.click("Deploy", role="link", exact=True)
    expect(scientist.page.locator("[name=name]")).to_have_value("detector")
    scientist.click("Request deployment")
    scientist.see("Request sent. Waiting for an approver.")

    lead = visit(world.lead, "/vision", theme="dark", width=1920)
    lead.click("Review", role="link")
    lead.click("Approve")
    lead.see("Approved.")
    assert lead.list_clicks() == ["Review", "Approve a"]
    world.work()
    deployment = Deployment.objects.get()
    world.cluster.make_ready("detector-r1")
    world.reconcile_now(deployment)
    world.cluster.pods = Pods({1: double})

    scientist.wait_for_poll("change-head", seconds=4)
    scientist.click("Open detector", role="link")
    scientist.click("Try it", role="link")
    scientist.click("Send")
    expect(scientist.page.locator("#answer")).to_contain_text("200")
    assert len(scientist.list_clicks()) <= 8


def test_a_canary_is_three_clicks_from_its_deployment(world: World, visit: Visit) -> None:
    world.serving()
    scientist = visit(world.member, ONE, theme="light", width=1280)

    scientist.click("Request a canary", role="link")
    scientist.click("Careful", role="radio")
    scientist.click("Request canary")

    scientist.see("Request sent. Waiting for an approver.")
    assert len(scientist.list_clicks()) <= 3
    change = ChangeRequest.objects.get(kind="canary")
    assert change.revision is not None
    assert change.revision.version == world.version2
