"""A TensorRT plan is compared with the GPU of the instance type, by what its uploader declared."""

from __future__ import annotations

import pytest

from deployments.models import ModelVersion
from deployments.preflight.services import compiled_models
from deployments.sizing.domain import compute_capability


def version(capability: str) -> ModelVersion:
    facts = {"compute_capability": capability} if capability else {}
    return ModelVersion(number=1, signature=facts)


@pytest.mark.parametrize(
    ("built_for", "gpu", "ok", "is_blocking"),
    [
        ("7.5", "Tesla-T4", True, True),
        ("8.6", "NVIDIA-A10G", True, True),
        ("8.6", "Tesla-T4", False, True),
        ("7.5", "NVIDIA-A10G", False, True),
        ("8.0", "NVIDIA-L4", False, False),
        ("9.0", "A100-SXM4-40GB", False, False),
        ("10.0", "NVIDIA-H100-80GB-HBM3", False, False),
        ("8.6", "NVIDIA-X1", None, False),
        ("8.6", "", None, False),
    ],
)
def test_the_gpu_has_to_be_the_one_of_the_plan(
    monkeypatch: pytest.MonkeyPatch, built_for: str, gpu: str, ok: bool | None, is_blocking: bool
) -> None:
    monkeypatch.setattr(ModelVersion, "label", "vision/rows:1")

    (check,) = compiled_models.check_gpus([version(built_for)], [gpu])

    assert check.ok is ok
    assert check.is_blocking is is_blocking
    assert f"compute capability {built_for}" in check.detail


def test_other_formats_have_no_such_check() -> None:
    assert compiled_models.check_gpus([version("")], ["Tesla-T4"]) == []


def test_plans_of_additional_models_have_a_check_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelVersion, "label", property(lambda row: f"vision/rows:{row.number}"))
    own, further = version("7.5"), version("8.6")
    further.number = 2

    checks = compiled_models.check_gpus([version(""), own, further], ["Tesla-T4"])

    assert [(check.ok, check.is_blocking) for check in checks] == [(True, True), (False, True)]
    assert "vision/rows:2 was built for compute capability 8.6" in checks[1].detail


def test_a_plan_is_refused_on_the_one_of_several_gpus_that_it_was_not_built_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ModelVersion, "label", "vision/rows:1")

    checks = compiled_models.check_gpus(
        [version("8.6")], ["NVIDIA-A10G", "Tesla-T4", "NVIDIA-A10G"]
    )

    assert [(check.ok, check.is_refusal) for check in checks] == [(True, False), (False, True)]
    assert checks[1].detail.endswith("as its uploader declared; Tesla-T4 has 7.5.")


def test_gpus_are_known_by_the_names_of_nodes_and_price_lists() -> None:
    names = ("T4", "Tesla-T4", "NVIDIA-A10G", "nvidia-l40s", "H100", "NVIDIA H200", "what")
    assert [compute_capability.get_compute_capability(name) for name in names] == [
        *("7.5", "7.5", "8.6", "8.9", "9.0", "9.0", ""),
    ]
