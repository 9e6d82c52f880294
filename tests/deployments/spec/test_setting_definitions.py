"""A setting is one field: what REST, the form and the rules know of it comes from its definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from django import forms

from deployments.changes.web import request_body
from deployments.changes.web.fields import SettingsForm
from deployments.changes.web.form import FIELDS as FORM_FIELDS
from deployments.spec.api.serializers import ServingSpecSerializer
from deployments.spec.domain.applicability import limit_to_engines, needs
from deployments.spec.domain.engines import ENGINES, LLM_ENGINES, TRITON
from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec
from fleet.clusters.domain.capability_descriptions import OPTION_NEEDS
from portal.api.definition_serializers import serializer_of
from portal.core import definitions
from portal.core.definitions import Definition, FieldDefinition, Rejected, setting
from portal.ui import definition_fields

FIELDS = definitions.deep_fields_of(ServingSpec)
ADDITIONAL_MODELS = definitions.deep_fields_of(AdditionalModel)
ALL = [
    *FIELDS.items(),
    *((f"additional_models.{path}", field) for path, field in ADDITIONAL_MODELS.items()),
]


def test_each_field_says_what_it_is_for() -> None:
    wrong = {path: _list_problems(definition) for path, definition in ALL}

    assert len(wrong) > 150
    assert {path: problems for path, problems in wrong.items() if problems} == {}


def _list_problems(definition: FieldDefinition) -> list[str]:
    engines = set(definition.extra.get("engines", ENGINES))
    is_right = {
        "a label": bool(definition.info.title),
        "a plain sentence": definition.help.endswith("."),
        "engines that exist": engines <= set(ENGINES),
        "what an engine does not support": engines == set(ENGINES)
        or bool(definition.extra["unsupported"]),
        "needs that exist": set(definition.extra.get("needs", {}).values()) <= set(OPTION_NEEDS),
    }
    return [what for what, holds in is_right.items() if not holds]


def rest_fields(serializer: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in serializer.fields.items():
        yield f"{prefix}{name}", field
        if hasattr(field, "fields"):
            yield from rest_fields(field, f"{prefix}{name}.")


def test_rest_has_exactly_these_fields_with_their_help_and_bounds() -> None:
    shown = dict(rest_fields(ServingSpecSerializer()))

    assert set(shown) == set(FIELDS)
    for path, definition in FIELDS.items():
        field = shown[path]
        if definition.model is None:
            assert field.help_text.startswith(definition.help)
            assert getattr(field, "max_length", None) == definition.max_length
        if definition.minimum is not None and not definition.extra.get("read_only"):
            assert field.help_text.endswith(
                f"to {definition.maximum} {definition.unit}".rstrip(" %") + "."
            )


def test_the_form_has_exactly_these_fields_with_their_help_and_bounds() -> None:
    form = SettingsForm()
    apart = {"engine", "instance_type", "gpu_resource", "gpus", "min_replicas", "max_replicas"}
    apart |= {
        "cpu",
        "memory",
        "env",
        "image",
        "schema",
        "additional_models",
        "llm",
        "llm.tensor_parallel",
    }
    switches = {f"scaling.{name}" for name in ("office_hours", "sqs", "kafka", "redis")}
    switches.add("triton.sequence")
    parts = {path for path, definition in FIELDS.items() if definition.model} - switches

    assert {one.path for one in request_body.SETTINGS.values()} == set(FIELDS) - apart - parts
    for name, one in request_body.SETTINGS.items():
        field, definition = form.fields[name], one.definition
        assert (field.label, field.help_text) == (definition.label, definition.help)
        if isinstance(field, forms.CharField):
            assert field.max_length == (definition.max_length or 300)


def test_each_setting_has_one_place_on_the_form() -> None:
    assert len(FORM_FIELDS) == len(set(FORM_FIELDS))
    assert set(request_body.SETTINGS) <= set(FORM_FIELDS)


def changed(definition: FieldDefinition) -> Any:
    """A value other than the default that the field accepts."""
    if definition.kind is bool:
        return not definition.default
    is_number = definition.kind is int and not definition.is_list
    return definition.default + 1 if is_number else None


@pytest.mark.parametrize("engine", ENGINES)
def test_a_field_that_the_engine_does_not_use_is_refused_at_its_path(engine: str) -> None:
    base = {"engine": engine, "instance_type": "g5.xlarge"}
    for path, definition in FIELDS.items():
        engines = definition.extra.get("engines", ENGINES)
        value = changed(definition)
        if "." in path or value is None or engine in engines:
            continue
        with pytest.raises(Rejected) as refusal:
            ServingSpec.from_json({**base, path: value})
        fix = definition.extra["unsupported"].format(engine=engine)
        assert refusal.value.fields == {path: fix}


class Quantization(Definition):
    """A setting that the product does not have."""

    group_size: Annotated[
        int,
        setting("Group size", "Weights that share a scale.", ge=32, le=256, fix="Use 32 to 256."),
        limit_to_engines(LLM_ENGINES, "{engine} does not quantize."),
        needs({64: "keda"}),
    ] = 128


class LargerSpec(ServingSpec):
    quantization: Annotated[Quantization, setting("Quantization", "Smaller weights.")] = (
        Quantization()
    )


def test_a_new_setting_is_one_field() -> None:
    base = {"engine": TRITON, "instance_type": "g5.xlarge"}
    definition = definitions.deep_fields_of(LargerSpec)["quantization.group_size"]
    fields: Any = serializer_of(LargerSpec)().fields
    rest = fields["quantization"].fields["group_size"]
    form_field = definition_fields.form_field(definition)

    assert rest.help_text == "Weights that share a scale. 32 to 256."
    assert (form_field.label, form_field.help_text) == (
        "Group size",
        "Weights that share a scale.",
    )
    for value, fix in ((8, "Use 32 to 256."), (64, "triton does not quantize.")):
        with pytest.raises(Rejected) as refusal:
            LargerSpec.from_json({**base, "quantization": {"group_size": value}})
        assert refusal.value.fields == {"quantization.group_size": fix}
