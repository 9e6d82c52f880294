"""Serializers of a rollout plan. Types, defaults and help are those of the definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel
from rest_framework import serializers

from deployments.guards.domain import catalogue, guard_set
from deployments.plans.domain.rollout_plan import AnalysisSettings, PlanKind, PlanSettings
from deployments.plans.domain.steps import Step
from portal.api.base_serializer import Serializer, choice_of
from portal.core.definitions import FieldDefinition, fields_of

_TYPES: Mapping[Any, type[serializers.Field[Any, Any, Any, Any]]] = {
    bool: serializers.BooleanField,
    int: serializers.IntegerField,
    float: serializers.FloatField,
    str: serializers.CharField,
}


def _field(definition: FieldDefinition, **options: Any) -> Any:
    """Return the field of a serializer. The definition checks bounds, so that REST and pages refuse a value
    with the same message.
    """
    if definition.help:
        options["help_text"] = definition.help
    if definition.max_length is not None:
        options["max_length"] = definition.max_length
    return _TYPES[definition.kind](**options)


def _with_default(definition: FieldDefinition) -> Any:
    if definition.is_required:
        return _field(definition)
    nullable = {"allow_null": True} if definition.is_nullable else {}
    return _field(definition, default=definition.default, **nullable)


# A docstring here would become the description of the components below.
class _DefinedSerializer(Serializer):
    definition: ClassVar[type[BaseModel]]

    def get_fields(self) -> dict[str, Any]:
        fields = {
            name: _with_default(definition)
            for name, definition in fields_of(self.definition).items()
        }
        return {**fields, **super().get_fields()}


class RolloutStepSerializer(_DefinedSerializer):
    definition = Step


class AnalysisSerializer(_DefinedSerializer):
    definition = AnalysisSettings


class GuardLimitSerializer(Serializer):
    def get_fields(self) -> dict[str, Any]:
        # Of all kinds of guards: which of the fields a guard may have depends on its metric.
        metric = serializers.ChoiceField(choices=catalogue.names())
        fields = {"metric": metric, **super().get_fields()}
        for model in dict.fromkeys(guard_set.LIMITS.values()):
            for name, definition in fields_of(model).items():
                if name not in fields:
                    nullable = {} if definition.kind in (str, bool) else {"allow_null": True}
                    fields[name] = _field(definition, required=False, **nullable)
        return fields


class PlanSerializer(Serializer):
    __doc__ = PlanSettings.__doc__

    kind = choice_of(PlanKind, required=False)
    has_baseline = _field(fields_of(PlanSettings)["has_baseline"], required=False)
    guards = GuardLimitSerializer(many=True, required=False)
    analysis = AnalysisSerializer(required=False)
    quality = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        required=False,
        help_text=fields_of(PlanSettings)["quality"].help,
    )
    move_alias = _field(fields_of(PlanSettings)["move_alias"], required=False, allow_blank=True)
    drain_seconds = _field(fields_of(PlanSettings)["drain_seconds"], required=False)
    watch_seconds = _field(fields_of(PlanSettings)["watch_seconds"], required=False)
    warmup_seconds = _field(
        fields_of(PlanSettings)["warmup_seconds"], required=False, allow_null=True
    )
