from __future__ import annotations

import pytest

from deployments.domain.states import VersionState
from deployments.tasks import artifacts
from tests.deployments.registry import onnx_models
from tests.deployments.registry.conftest import Upload

pytestmark = pytest.mark.django_db


def test_a_lost_wake_up_costs_a_sweep_and_nothing_else(upload: Upload) -> None:
    version = upload(onnx_models.linear())

    artifacts.sweep_versions()
    version.refresh_from_db()
    assert version.state == VersionState.READY

    artifacts.verify_version(version.pk)
    artifacts.verify_version(version.pk + 1000)
    artifacts.sweep_versions()
    version.refresh_from_db()
    assert version.state == VersionState.READY
