"""AdditionalModel models on the form of a new deployment: as texts, as the request's body, and back."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.changes.web import request_body
from deployments.changes.web import settings as change_settings
from deployments.changes.web.form import Choices, DeployForm
from deployments.changes.web.request_body import Unreadable
from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec

_DATA = {
    **request_body.DEFAULTS,
    "version": "1",
    "name": "detector",
    "share": "g5.xlarge|nvidia.com/gpu|1",
}
_CHOICES = Choices(
    versions=[("1", "detector:3")],
    addable=["classifier:1"],
    clusters=[],
    shares=[],
)


def test_chosen_models_stand_in_the_body_and_come_back() -> None:
    data = {**_DATA, "additional_model_1": "classifier:1", "additional_model_3": "embedder:4"}

    body = request_body.body_of(data)
    back = request_body.fields_of(body)

    assert ServingSpec.from_json(body["spec"]).additional_models == (
        AdditionalModel(model="classifier", version=1),
        AdditionalModel(model="embedder", version=4),
    )
    assert (back["additional_model_1"], back["additional_model_2"]) == (
        "classifier:1",
        "embedder:4",
    )
    assert "additional_models" not in request_body.spec_of(_DATA)


@pytest.mark.parametrize(
    "additional_models",
    [
        "classifier:1",
        [{"model": "classifier", "version": 1, "warm_up": True}],
        [{"model": f"m{n}", "version": 1} for n in range(4)],
    ],
)
def test_settings_the_form_cannot_show_are_named_and_not_dropped(additional_models: Any) -> None:
    body = {
        "name": "detector",
        "spec": {"engine": "triton", "additional_models": additional_models},
    }

    with pytest.raises(Unreadable):
        request_body.fields_of(body)


def test_only_a_version_that_can_be_served_beside_it_is_accepted() -> None:
    def errors(label: str) -> bool:
        form = DeployForm({**_DATA, "additional_model_1": label}, choices=_CHOICES)
        return "additional_model_1" in form.errors

    assert not errors("classifier:1")
    assert not errors("")
    assert errors("detector:2")
    settings = change_settings.settings_of(DeployForm(_DATA, choices=_CHOICES), _DATA, None)
    assert settings["additional_model_1"].is_searched
    assert settings["additional_model_1"].reason == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"engine": "kserve-vllm"}, "kserve-vllm uses the whole GPU share"),
        ({"scaling_kind": "knative"}, "Knative"),
    ],
)
def test_multi_model_serving_is_off_with_its_reason_where_it_cannot_be(
    changed: dict[str, str], message: str
) -> None:
    data = {**_DATA, **changed}

    settings = change_settings.settings_of(DeployForm(data, choices=_CHOICES), data, None)

    assert message in settings["additional_model_1"].reason
    assert settings["additional_model_1"].is_off
