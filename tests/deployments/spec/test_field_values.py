from __future__ import annotations

import pytest

from deployments.registry.domain.metadata import metric_direction
from deployments.spec.domain import field_values
from deployments.spec.domain.serving_spec import (
    AdditionalModel,
    Llm,
    OfficeHours,
    Scaling,
    ServingSpec,
)


def test_every_setting_of_a_spec_is_a_line_without_values_of_python() -> None:
    spec = ServingSpec(
        engine="triton",
        instance_type="g5.xlarge",
        max_replicas=3,
        scaling=Scaling(kind="keda", office_hours=OfficeHours()),
        additional_models=(AdditionalModel(model="ocr", version=2),),
    )

    lines = field_values.flatten({**spec.to_json(), "env": {"B": "2", "A": "1"}})

    assert lines["env"] == "A=1, B=2"
    assert lines["batching.is_dynamic"] == "yes"
    assert lines["warm_up"] == "no"
    assert lines["llm"] == ""
    assert lines["scaling.office_hours.days"] == "1-5"
    assert lines["additional_models.1"] == "ocr:2"
    assert lines["additional_models.1.batching.is_dynamic"] == "yes"
    text = " ".join(lines.values())
    assert not any(word in text for word in ("{", "[", "'", "True", "False", "None"))


def test_language_model_and_none_read_alike_on_both_sides() -> None:
    lines = field_values.flatten({"llm": {"gpu_memory_utilization": 0.9, "nodes": 1}})

    assert lines == {"llm.gpu_memory_utilization": "0.9", "llm.nodes": "1"}
    assert Llm().nodes == 1


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("batching.is_dynamic", "Batching: Dynamic batching"),
        ("scaling.can_scale_to_zero", "Autoscaling: Scale to zero"),
        ("scaling.cooldown_seconds", "Autoscaling: Cooldown (seconds)"),
        ("batching.max_queue_delay_us", "Batching: Queue delay (µs)"),
        ("scaling.kind", "Autoscaling"),
        ("additional_models.1", "Multi-model serving 1"),
        ("additional_models.1.warm_up", "Multi-model serving 1: Warm up"),
        ("gpu_resource", "GPU resource"),
        ("cpu", "CPU"),
        ("sha256", "SHA-256"),
        ("instance_type", "Instance type"),
        ("llm.kv_cache_dtype", "Language model: KV cache"),
    ],
)
def test_fields_have_names_that_people_read(name: str, label: str) -> None:
    assert field_values.describe_field(name) == label


@pytest.mark.parametrize(
    ("name", "text", "shown"),
    [
        ("network.access", "open", "Public (no authentication)"),
        ("network.access", "", ""),
        ("instance_type", "g5.xlarge", "g5.xlarge"),
        ("sha256", "open", "open"),
        ("additional_models.1", "detector:2", "detector:2"),
    ],
)
def test_a_choice_is_shown_by_its_label(name: str, text: str, shown: str) -> None:
    assert field_values.describe_value(name, text) == shown


@pytest.mark.parametrize(
    ("name", "before", "after", "tone"),
    [
        ("accuracy", 0.94, 0.91, "bad"),
        ("accuracy", "0.91", "0.94", "good"),
        ("val_loss", 0.2, 0.3, "bad"),
        ("error_rate", 0.3, 0.2, "good"),
        ("p95_latency_ms", 90, 120, "bad"),
        ("f1", 0.5, 0.6, "good"),
        ("f1", 0.5, 0.5, ""),
        ("accuracy_loss", 0.1, 0.2, ""),
        ("temperature", 1, 2, ""),
        ("dataset_version", "2026-01", "2026-02", ""),
        ("accuracy", "", 0.9, ""),
        ("max_replicas", "2", "4", ""),
        ("guards.latency", "2", "4", ""),
    ],
)
def test_tone_follows_the_direction_of_the_metric(
    name: str, before: object, after: object, tone: str
) -> None:
    assert metric_direction.tone(name, before, after) == tone
