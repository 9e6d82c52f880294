"""The names of the classes that scikit-learn knows travel with the forest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.test import Client

from deployments.registry.domain import signatures
from deployments.registry.domain.forests import class_names
from deployments.registry.services import verification, versions
from deployments.serving.domain import inference_call
from deployments.states import VersionState
from tests.deployments.registry.test_released_forests import ROWS, dumped
from tests.deployments.uploading import People, Upload
from tests.page import page

NAMES = np.array(["cat", "dog", "owl"])


def forest(labels: Any) -> bytes:
    from sklearn.ensemble import RandomForestClassifier

    return dumped(RandomForestClassifier(5, random_state=3).fit(ROWS, labels))


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["U", "O"])
def test_names_are_on_the_page_in_rest_and_in_try_it(
    people: People, verified: Upload, client: Client, kind: str
) -> None:
    labels = NAMES[np.arange(len(ROWS)) % 3].astype(kind)
    version = verified(forest(labels), filename="forest.joblib")
    versions.release(actor=people.admin, version_id=version.pk, reason="Our own.", days=1)
    verification.advance(version.pk)

    version.refresh_from_db()
    assert (version.state, version.state_reason) == (VersionState.READY, "")
    client.force_login(people.viewer)
    shown = page(client.get(f"/vision/models/{version.model.name}/{version.number}"))
    assert "Classes, in the order of the scores: cat, dog, owl." in shown.part("signature").text
    answer = client.get(f"/api/v1/versions/{version.pk}").json()
    assert answer["signature"]["class_names"] == ["cat", "dog", "owl"]
    signature = signatures.from_json(version.signature)
    call = inference_call.call_of(engine="triton", model="forest", signature=signature)
    assert call.class_names == ("cat", "dog", "owl")


@pytest.mark.parametrize(
    ("values", "outputs", "names"),
    [
        (np.array(["no", "yes"]), 2, ("no", "yes")),
        (np.array(["no", "yes"]), 1, ("no", "yes")),
        (np.array([3, 7]), 2, ("3", "7")),
        (np.array([0.5, 1.0]), 2, ("0.5", "1")),
        (np.array([False, True]), 2, ("False", "True")),
        (np.array([0, 1, 2]), 3, ()),
        (np.array(["a", "b", "c"]), 2, ()),
        (np.array([["a"], ["b"]]), 2, ()),
        ([{}, {}], 2, ()),
        (None, 2, ()),
    ],
)
def test_names_are_one_for_each_score(values: Any, outputs: int, names: tuple[str, ...]) -> None:
    assert class_names.read_names(values, outputs=outputs) == names


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ('{"_estimator_type": "classifier"}', ()),
        ('{"classes_": ["a", "b"]}', ("a", "b")),
        ('{"_le": {"classes_": ["x", "y", "z"]}, "classes_": [0, 1, 2]}', ("x", "y", "z")),
        ('{"_le": 3, "classes_": [0, 1]}', ()),
        ("[]", ()),
        ("no JSON", ()),
    ],
)
def test_names_that_old_wrappers_of_xgboost_wrote(written: str, names: tuple[str, ...]) -> None:
    assert class_names.read_from_xgboost({"scikit_learn": written}) == names
