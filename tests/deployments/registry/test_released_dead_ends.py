"""Whoever uploads a file with code that no engine serves is told so at once, and no admin is asked to release it."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
from django.test import Client

from deployments.registry.domain.formats import catalogue
from deployments.registry.services import versions
from deployments.states import VersionState
from portal.core.errors import Conflict
from tests.artifacts import MemoryArtifact
from tests.deployments.uploading import People, Upload
from tests.page import page

pytestmark = [pytest.mark.django_db]


def saved_by_torch() -> bytes:
    """As torch.save writes a state dict: a clean one, of zipped pickle and storages."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("m/data.pkl", pickle.dumps({"weight": [1.0, 2.0]}, protocol=2))
        archive.writestr("m/byteorder", "little")
        archive.writestr("m/data/0", bytes(16))
        archive.writestr("m/version", "3\n")
    return body.getvalue()


def dumped(model: Any) -> bytes:
    body = io.BytesIO()
    joblib.dump(model, body)
    return body.getvalue()


def logistic_regression() -> bytes:
    from sklearn.linear_model import LogisticRegression

    return dumped(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))


def pipeline() -> bytes:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    steps = make_pipeline(StandardScaler(), RandomForestClassifier(2))
    return dumped(steps.fit([[0.0], [1.0]], [0, 1]))


def boosted(library: str, name: str) -> Callable[[], bytes]:
    def build() -> bytes:
        import importlib

        model = getattr(importlib.import_module(library), name)(n_estimators=2)
        return dumped(model.fit(np.arange(40.0).reshape(-1, 1), np.arange(40) % 2))

    return build


def arrays() -> bytes:
    body = io.BytesIO()
    np.save(body, np.array([{"a": 1}]), allow_pickle=True)
    return body.getvalue()


@pytest.mark.parametrize(
    ("filename", "build", "way_out"),
    [
        ("model.pt", saved_by_torch, "torch.onnx.export"),
        ("model.npy", arrays, "Export the model to ONNX"),
        ("model.pkl", lambda: pickle.dumps({"weights": [1.0]}), "Export the model to ONNX"),
        ("model.joblib", logistic_regression, "skl2onnx"),
        ("model.joblib", pipeline, "skl2onnx"),
        ("model.pkl", boosted("xgboost", "XGBClassifier"), "model.save_model('model.json')"),
        ("model.pkl", boosted("lightgbm", "LGBMClassifier"), "booster_.save_model('model.txt')"),
    ],
)
def test_no_release_is_asked_for_or_taken(
    verified: Upload,
    people: People,
    client: Client,
    filename: str,
    build: Callable[[], bytes],
    way_out: str,
) -> None:
    version = verified(build(), filename=filename)

    assert version.state == VersionState.QUARANTINED
    assert "A release would have no effect" in version.state_reason
    assert "has to release" not in version.state_reason
    assert way_out in version.state_reason
    with pytest.raises(Conflict) as refusal:
        versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=1)
    assert refusal.value.code == "not_servable"
    version.refresh_from_db()
    assert (version.state, version.release) == (VersionState.QUARANTINED, {})
    client.force_login(people.admin)
    shown = page(client.get(f"/vision/models/{version.model.name}/{version.number}"))
    assert "Release from quarantine" not in shown.text


def test_a_file_of_skops_is_named(tmp_path: Any) -> None:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        archive.writestr("139.npy", b"\x93NUMPY")
        archive.writestr("schema.json", "{}")
    content = body.getvalue()

    found = catalogue.detect(MemoryArtifact({"m.skops": content}, {"m.skops": len(content)}))

    assert found.format.key == "skops"
    assert "joblib.dump(model, 'model.joblib')" in found.describe_refusal("m.skops")
