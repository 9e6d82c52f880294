"""A second model of the team, which a deployment of the first may serve too."""

from __future__ import annotations

from deployments.models import Model, ModelVersion
from deployments.states import VersionState
from portal.core import clock
from tests.deployments.world import World


def make_classifier(world: World) -> ModelVersion:
    """Version 1 of classifier, ready."""
    at = clock.now()
    model = Model.objects.create(
        team=world.team, name="classifier", created_by=world.member, created_at=at, changed_at=at
    )
    version = ModelVersion.objects.create(
        model=model,
        number=1,
        state=VersionState.READY,
        filename="classifier.onnx",
        declared_size_bytes=20,
        size_bytes=20,
        bucket="slipway-models",
        upload_prefix="uploads/c1/",
        sha256="c" * 64,
        repository_prefix="repositories/vision/classifier/1/cccccccccccc/",
        created_by=world.member,
        created_at=at,
    )
    world.store.lay_out(version)
    return version
