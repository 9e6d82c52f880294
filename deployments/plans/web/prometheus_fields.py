"""What the form of a plan asks of the cluster's Prometheus: percentiles, and queries of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.forms import BoundField

from deployments.guards.domain import percentiles as guard_percentiles
from deployments.guards.domain import promql
from deployments.guards.domain.promql import PLACEHOLDERS
from deployments.plans.domain.rollout_plan import PlanSettings

MOST_QUERIES: Final = 6


@dataclass(frozen=True, slots=True)
class QueryRow:
    name: BoundField
    query: BoundField
    least: BoundField
    most: BoundField
    breaches: BoundField

    @property
    def is_spare(self) -> bool:
        """Nothing is typed in: out of sight until someone adds a query."""
        typed = (self.name, self.query, self.least, self.most)
        return not any(field.value() not in (None, "") or field.errors for field in typed)


class PrometheusFields(forms.Form):
    """A part of the plan's form."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for metric in guard_percentiles.QUANTILES:
            self.fields[f"max_{metric}"] = forms.FloatField(required=False, min_value=0)
            self.fields[f"ratio_{metric}"] = forms.FloatField(required=False, min_value=1)
        for index in range(MOST_QUERIES):
            self.fields[f"query_name_{index}"] = forms.CharField(required=False, max_length=40)
            self.fields[f"query_{index}"] = forms.CharField(required=False, max_length=1000)
            self.fields[f"query_min_{index}"] = forms.FloatField(required=False)
            self.fields[f"query_max_{index}"] = forms.FloatField(required=False)
            self.fields[f"query_breaches_{index}"] = forms.IntegerField(required=False, min_value=1)

    def query_rows(self) -> Iterator[QueryRow]:
        for index in range(MOST_QUERIES):
            yield QueryRow(
                self[f"query_name_{index}"],
                self[f"query_{index}"],
                self[f"query_min_{index}"],
                self[f"query_max_{index}"],
                self[f"query_breaches_{index}"],
            )

    def query_count(self) -> int:
        return sum(not row.is_spare for row in self.query_rows())

    @property
    def placeholders(self) -> list[tuple[str, str]]:
        return [(f"${name}", words) for name, words in PLACEHOLDERS.items()]

    def prometheus_guards(self) -> list[dict[str, Any]]:
        """As a plan has them; what is empty is left out."""
        data = self.cleaned_data
        percentiles = [
            {"metric": metric, "max": data[f"max_{metric}"], "max_ratio": data[f"ratio_{metric}"]}
            for metric in guard_percentiles.QUANTILES
        ]
        asked = [one for one in percentiles if _has_limit(one)]
        return asked + [
            _query_of(data, index) for index in range(MOST_QUERIES) if _has(data, index)
        ]


def shown(plan: PlanSettings) -> dict[str, Any]:
    """What the fields hold of a plan."""
    found: dict[str, Any] = {}
    for percentile in plan.percentiles:
        found[f"max_{percentile.metric}"] = percentile.max
        found[f"ratio_{percentile.metric}"] = percentile.max_ratio
    for index, guard in enumerate(plan.queries[:MOST_QUERIES]):
        found[f"query_name_{index}"] = guard.name
        found[f"query_{index}"] = guard.query
        found[f"query_min_{index}"] = guard.min
        found[f"query_max_{index}"] = guard.max
        found[f"query_breaches_{index}"] = guard.breaches
    return found


def _has_limit(guard: Mapping[str, Any]) -> bool:
    return guard["max"] is not None or guard["max_ratio"] is not None


def _has(data: Mapping[str, Any], index: int) -> bool:
    return bool(data[f"query_name_{index}"] or data[f"query_{index}"])


def _query_of(data: Mapping[str, Any], index: int) -> dict[str, Any]:
    return {
        "metric": promql.METRIC,
        "name": data[f"query_name_{index}"],
        "query": data[f"query_{index}"],
        "min": data[f"query_min_{index}"],
        "max": data[f"query_max_{index}"],
        "breaches": data[f"query_breaches_{index}"],
    }
