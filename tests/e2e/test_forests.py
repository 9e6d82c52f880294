"""A model that XGBoost saved, by REST from its file to its answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tritonclient.http as triton_http

from tests.e2e.rest import Person
from tests.fixtures import forest_models


def test_a_deployed_xgboost_model_answers_as_xgboost_does(
    member: Person, lead: Person, tmp_path: Path
) -> None:
    model = forest_models.xgboost_model(
        "risk", "risk.ubj", tmp_path, objective="multi:softprob", num_class=4
    )
    rows = forest_models.rows(50)

    version = member.upload("risk", tmp_path / model.filename)
    change = member.request_deployment(version, "risk")
    lead.approve(change)
    served = member.wait_until_ready(change["deployment_id"])

    with triton_http.InferenceServerClient(served["url"].removeprefix("http://")) as client:
        given = triton_http.InferInput("input__0", [25, forest_models.FEATURES], "FP32")
        halves = []
        for half in np.split(rows, 2):
            given.set_data_from_numpy(half)
            halves.append(client.infer("risk", [given]).as_numpy("output__0"))
    np.testing.assert_allclose(np.concatenate(halves), model.predict(rows), rtol=2e-6, atol=2e-6)
    member.retire(served["id"], approved_by=lead)
