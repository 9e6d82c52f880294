"""A cluster that runs language models, and versions by reference to deploy there."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check, DeployDraft, Preflight
from deployments.preflight.services import preflight
from deployments.registry.services import references
from deployments.registry.services.references import ReferenceDraft
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.capability_descriptions import FEATURE_DESCRIPTIONS
from fleet.models import Cluster
from tests.deployments.world import World

COMMIT = "ab12" * 10
URI = f"hf://org/chat:{COMMIT}"
NEXT = f"hf://org/chat:{'cd34' * 10}"
IMAGE = f"oci://ghcr.io/org/chat:2@sha256:{'ef' * 32}"
CLAIM = "pvc://weights/chat/1"


def register(world: World, uri: str = URI, *, model: str = "chat", **stated: Any) -> ModelVersion:
    return references.register(
        actor=world.member,
        team_slug="vision",
        model_name=model,
        draft=ReferenceDraft(uri, metadata=stated),
    )


def draft(world: World, version: ModelVersion, **changed: Any) -> DeployDraft:
    data = {
        "engine": "kserve-vllm",
        "instance_type": "g5.xlarge",
        "network": {"access": "open"},
        **changed,
    }
    return DeployDraft(version.pk, world.cluster_id, "chat", ServingSpec.from_json(data))


def checked(world: World, version: ModelVersion, **changed: Any) -> Preflight:
    return preflight.check(actor=world.member, draft=draft(world, version, **changed))


def named(result: Preflight, name: str) -> Check:
    return next(check for check in result.checks if check.name == name)


@pytest.fixture
def language_cluster(world: World) -> None:
    features = {name: Feature(name != "kserve-knative") for name in FEATURE_DESCRIPTIONS}
    # KServe mounts images: a container of its own would be refused under Pod Security restricted.
    features["image-weights"] = Feature(is_there=True, version="native")
    Cluster.objects.update(
        capabilities=Capabilities(features=features).to_json(),
        serving={"allowed_images": ["ghcr.io/org/*"]},
    )
