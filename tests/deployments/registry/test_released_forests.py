"""A harmless joblib file waits for a platform admin's release, and is then served with the answers of
scikit-learn. Nothing of the file is ever executed.
"""

from __future__ import annotations

import io
import json
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import time_machine
import tritonclient.http as triton_http

from deployments.models import ModelVersion
from deployments.registry.services import upload_endings, verification, versions
from deployments.states import VersionState
from portal.core import clock
from portal.core.errors import Conflict
from tests.deployments import real_triton
from tests.deployments.uploading import People, Upload
from tests.fixtures import hostile_files

pytestmark = [pytest.mark.django_db]

ROWS = np.random.default_rng(7).normal(size=(400, 6)).astype(np.float32)
ROWS[::7, 2] = np.nan
CLASSES = np.digitize(np.nan_to_num(ROWS[:, 0] + ROWS[:, 2]), [-0.5, 0.5])


def dumped(model: Any, **options: Any) -> bytes:
    body = io.BytesIO()
    joblib.dump(model, body, **options)
    return body.getvalue()


def forest(**options: Any) -> bytes:
    # Each worker of a run imports all test files; this takes longer than any other import.
    from sklearn.ensemble import RandomForestClassifier

    return dumped(RandomForestClassifier(10, random_state=3).fit(ROWS, CLASSES), **options)


def released(people: People, version: ModelVersion, *, days: int = 30) -> ModelVersion:
    versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=days)
    verification.advance(version.pk)
    version.refresh_from_db()
    return version


def test_a_harmless_joblib_waits_for_a_release_and_nothing_is_lost(verified: Upload) -> None:
    version = verified(forest(), filename="forest.joblib")

    assert version.state == VersionState.QUARANTINED
    assert "found no dangerous code" in version.state_reason
    (file,) = version.scan["files"]
    assert {row["scanner"]: row["outcome"] for row in file["verdicts"]} == {
        "rules": "clean",
        "picklescan": "clean",
        "modelscan": "clean",
    }
    assert "picklescan 1." in version.scan_engines
    assert version.repository_prefix == ""


def test_after_its_release_triton_answers_as_scikit_learn_does(
    people: People, verified: Upload, s3_store: Any, tmp_path: Path
) -> None:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    models = {
        "randomforest": RandomForestClassifier(12, random_state=3).fit(ROWS, CLASSES),
        "extratrees": ExtraTreesClassifier(8, random_state=3).fit(ROWS, CLASSES > 0),
        "numbers": RandomForestRegressor(9, random_state=3).fit(ROWS, np.nan_to_num(ROWS[:, 1])),
    }
    for number, (name, model) in enumerate(models.items()):
        body = dumped(model, compress=number)
        version = released(people, verified(body, model=name, filename="model.joblib"))
        assert (version.state, version.state_reason) == (VersionState.READY, "")
        _lay_out(s3_store, version, tmp_path / "models")
    child, port = real_triton.start(tmp_path)
    try:
        answers = {name: _ask(port, name) for name in models}
    finally:
        child.kill()

    for name, model in models.items():
        expected = model.predict_proba(ROWS) if name != "numbers" else model.predict(ROWS)
        np.testing.assert_allclose(
            answers[name], expected.reshape(len(ROWS), -1), rtol=2e-6, atol=2e-6, err_msg=name
        )


def _lay_out(store: Any, version: ModelVersion, folder: Path) -> None:
    for item in version.laid_out:
        path = folder / str(item["key"]).removeprefix(version.repository_prefix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(store.read(item["key"], item["version_id"])))


def _ask(port: int, name: str) -> Any:
    client = triton_http.InferenceServerClient(f"127.0.0.1:{port}")
    parts = []
    for start in range(0, len(ROWS), 25):
        rows = ROWS[start : start + 25]
        given = triton_http.InferInput("input__0", list(rows.shape), "FP32")
        given.set_data_from_numpy(rows)
        parts.append(client.infer(name, [given]).as_numpy("output__0"))
    client.close()
    return np.concatenate(parts)


def test_a_release_ends_on_time(people: People, verified: Upload) -> None:
    version = released(people, verified(forest(), filename="forest.joblib"), days=2)
    assert version.state == VersionState.READY
    assert version.release["by"] == "admin"
    assert version.deadline_at.isoformat() == version.release["until"]
    assert version.next_check_at == version.deadline_at

    with time_machine.travel(clock.now() + timedelta(days=2, minutes=1)):
        verification.advance(version.pk)

    version.refresh_from_db()
    assert version.state == VersionState.ARCHIVED


@pytest.mark.parametrize("protocol", [0, 4])
def test_reading_before_a_release_executes_nothing(
    people: People, verified: Upload, tmp_path: Path, protocol: int
) -> None:
    marker = tmp_path / "executed"
    body = pickle.dumps(hostile_files.Writes(marker), protocol=protocol)

    version = verified(body, filename="model.pkl")

    assert version.state == VersionState.QUARANTINED
    assert "exec" in version.state_reason
    with pytest.raises(Conflict, match="No engine supports"):
        released(people, version)
    assert not marker.exists()


def test_stopping_the_verification_of_a_released_version_keeps_its_file(
    people: People, verified: Upload
) -> None:
    version = verified(forest(), filename="forest.joblib")
    versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=1)

    upload_endings.stop_verification(actor=people.member, version_id=version.pk)

    version.refresh_from_db()
    assert (version.state, version.release) == (VersionState.QUARANTINED, {})
    verification.advance(version.pk)
    assert version.files.get().s3_version_id


def test_a_format_that_no_engine_serves_is_not_released(people: People, verified: Upload) -> None:
    body = io.BytesIO()
    np.save(body, np.array([{"a": 1}]), allow_pickle=True)
    version = verified(body.getvalue(), filename="model.npy")

    with pytest.raises(Conflict, match="No engine supports"):
        versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=1)

    version.refresh_from_db()
    assert (version.state, json.dumps(version.release)) == (VersionState.QUARANTINED, "{}")
