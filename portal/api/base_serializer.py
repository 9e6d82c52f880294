"""The base of every serializer that is not bound to a model: it refuses fields that it does not know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Final

from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import QueryDict
from rest_framework import serializers

from portal.api.pagination import MOST_ROWS, CursorPage
from portal.core.definitions import unknown_names

# What a column of numbers holds.
HIGHEST_INTEGER: Final = 2**63 - 1
# Query parameters of lists, in addition to their filter. portal.api.openapi.documented_only refuses them where there are no pages.
_OF_LISTS = (CursorPage.cursor_query_param, str(CursorPage.page_size_query_param))


def bound_integers(field: serializers.Field[Any, Any, Any, Any]) -> None:
    """Refuse integers that no column holds in the field and what it consists of. SQLite fails on them."""
    if isinstance(
        field, serializers.BaseSerializer | serializers.ListField | serializers.DictField
    ):
        for child in (getattr(field, "child", None), *getattr(field, "fields", {}).values()):
            if child is not None:
                bound_integers(child)
    elif isinstance(field, serializers.IntegerField):
        field.validators.extend(_BOUNDS)


_BOUNDS: Final = (
    MaxValueValidator(HIGHEST_INTEGER, f"Use at most {HIGHEST_INTEGER}."),
    MinValueValidator(-HIGHEST_INTEGER, f"Use at least -{HIGHEST_INTEGER}."),
)


# A docstring here would become the description of every component in the OpenAPI document.
# A misspelt field never passes as left out, at any depth, and one that the portal sets never as taken.
class Serializer(serializers.Serializer[Any]):
    # Read-only fields that may be sent with this value, so that a copied answer is a request.
    same_as_left_out: ClassVar[Mapping[str, Any]] = {}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return super().to_internal_value(data)
        known = [*self.fields, *_OF_LISTS] if isinstance(data, QueryDict) else list(self.fields)
        unknown = unknown_fields(data, known) | self._read_only_fields(data)
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if unknown and isinstance(error.detail, dict):
                raise serializers.ValidationError({**error.detail, **unknown}) from error
            raise
        if unknown:
            raise serializers.ValidationError(unknown)
        return values

    def _read_only_fields(self, data: Mapping[Any, Any]) -> dict[str, str]:
        return {
            name: "The portal sets this. Leave it out."
            for name, field in self.fields.items()
            if field.read_only and name in data and data[name] != self.same_as_left_out.get(name)
        }


def unknown_fields(data: Mapping[Any, Any], known: Iterable[str]) -> dict[str, str]:
    names = list(known)
    return {
        str(name)[: unknown_names.LONGEST]: unknown_names.describe(str(name), names)
        for name in data
        if name not in names
    }


def choice_of(members: Iterable[StrEnum], **options: Any) -> serializers.ChoiceField:
    """Return a field for one of the values of an enum."""
    return serializers.ChoiceField(choices=[member.value for member in members], **options)


def dollars(**options: Any) -> serializers.DecimalField:
    return serializers.DecimalField(max_digits=20, decimal_places=6, **options)


class PageSerializer(Serializer):
    """`limit` is at most that of the list."""

    limit = serializers.IntegerField(required=False, min_value=1, max_value=MOST_ROWS)
    cursor = serializers.CharField(required=False, help_text="the cursor in `next` or `previous`")
