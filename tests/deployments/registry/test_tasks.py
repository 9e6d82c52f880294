from __future__ import annotations

import pytest

from deployments import tasks
from deployments.states import VersionState
from tests.deployments import onnx_models
from tests.deployments.uploading import Upload

pytestmark = pytest.mark.django_db


def test_a_lost_wake_up_costs_a_sweep_and_nothing_else(upload: Upload) -> None:
    version = upload(onnx_models.linear())

    tasks.sweep_versions()
    version.refresh_from_db()
    assert version.state == VersionState.READY

    tasks.verify_version(version.pk)
    tasks.verify_version(version.pk + 1000)
    tasks.sweep_versions()
    version.refresh_from_db()
    assert version.state == VersionState.READY
