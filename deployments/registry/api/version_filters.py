"""Filters and order of lists of versions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from rest_framework import serializers
from rest_framework.pagination import Cursor
from rest_framework.request import Request

from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.metadata import search_query
from deployments.registry.selectors.version_search import VersionFilter
from deployments.states import VersionState
from portal.api.base_serializer import Serializer, choice_of
from portal.api.pagination import CursorPage
from portal.api.parsing import Malformed

_SORT: Final = re.compile(r"-?(created|metric:[A-Za-z][\w.@/%-]{0,79})", re.ASCII)
_MAX_CHOICES: Final = 10


def labels_field() -> serializers.ListField:
    return serializers.ListField(
        child=serializers.CharField(max_length=264),
        default=list,
        max_length=_MAX_CHOICES,
        help_text="key=value, or a key alone; of several, all must be there",
    )


def format_field() -> serializers.ChoiceField:
    keys = [kind.key for kind in catalogue.FORMATS]
    return serializers.ChoiceField(choices=keys, default="", allow_blank=True)


def _check_condition(text: str) -> None:
    if search_query.parse_condition(text) is None:
        raise serializers.ValidationError("Write a condition as name>0.5; also >=, <, <=, =.")


class VersionFilterSerializer(Serializer):
    search = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=200,
        help_text="words of names, descriptions, README, metadata, labels, tasks and formats; also "
        "v3, detector:3, vision/detector:3, map>0.5 and precision=int8. All must match",
    )
    team = serializers.CharField(default="", allow_blank=True, max_length=60)
    model = serializers.CharField(default="", allow_blank=True, max_length=60)
    state = choice_of(VersionState, default="", allow_blank=True)
    format = format_field()
    task = serializers.CharField(default="", allow_blank=True, max_length=60)
    label = labels_field()  # type: ignore[assignment]  # the name of the parameter
    metric = serializers.ListField(
        child=serializers.CharField(max_length=120, validators=[_check_condition]),
        default=list,
        max_length=_MAX_CHOICES,
        help_text="a condition on a metric, for example map>0.5; of several, all must hold",
    )
    sha256 = serializers.CharField(default="", allow_blank=True, max_length=64)


class VersionListSerializer(VersionFilterSerializer):
    sort = serializers.CharField(
        default="-created",
        help_text="created or metric:NAME, with - in front for the largest first. By a metric only "
        "versions that have it are listed",
    )

    def validate_sort(self, value: str) -> str:
        if not _SORT.fullmatch(value):
            raise serializers.ValidationError("Use created or metric:NAME, or - before either.")
        return value


def filter_of(query: dict[str, Any]) -> VersionFilter:
    same = ("team", "model", "state", "format", "task", "sha256")
    return VersionFilter(
        query=search_query.parse(query["search"]),
        conditions=tuple(filter(None, map(search_query.parse_condition, query["metric"]))),
        labels=tuple(query["label"]),
        **{name: query[name] for name in same},
    )


class MetricPage(CursorPage):
    """A page of versions in the order of a metric's value; versions with the same value by their id."""

    def __init__(self, *, is_descending: bool) -> None:
        sign = "-" if is_descending else ""
        self.ordering: Sequence[str] = (f"{sign}metric_value", f"{sign}id")  # type: ignore[assignment]  # as DRF reads it

    def decode_cursor(self, request: Request) -> Cursor | None:
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None and not _is_number(cursor.position):
            raise Malformed(
                "The cursor is not valid for this order. Omit it for the first page.",
                fields={self.cursor_query_param: "not valid for this order"},
            )
        return cursor


class AgePage(CursorPage):
    def __init__(self, *, is_descending: bool) -> None:
        self.ordering = "-id" if is_descending else "id"


def _is_number(text: object) -> bool:
    try:
        return math.isfinite(float(str(text)))
    except ValueError:
        return False
