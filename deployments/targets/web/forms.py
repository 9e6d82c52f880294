"""The forms of the tab Targets."""

from __future__ import annotations

from django import forms

from deployments.states import TargetMetric
from deployments.targets.domain import metrics
from deployments.targets.services.targets import TargetDraft
from portal.ui.service_form import ServiceForm

_METRICS = [(metric.value, kind.label) for metric, kind in metrics.KINDS.items()]


class TargetForm(ServiceForm):
    metric = forms.ChoiceField(choices=_METRICS, label="Metric")
    objective_percent = forms.DecimalField(
        max_digits=6,
        decimal_places=3,
        label="Objective",
        initial="99.9",
        help_text="Share of good requests. For p95, it is the share of readings within the limit: 99% is strict.",
    )
    window_days = forms.TypedChoiceField(
        choices=[(str(days), f"{days} days") for days in metrics.WINDOWS],
        coerce=int,
        initial="30",
        label="Window",
    )
    threshold_ms = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=metrics.MOST_MS,
        label="Limit",
        help_text="For latency targets. Leave empty for availability.",
    )

    def draft(self) -> TargetDraft:
        data = self.cleaned_data
        return TargetDraft(
            metric=TargetMetric(data["metric"]),
            objective_percent=data["objective_percent"],
            window_days=data["window_days"],
            threshold_ms=data["threshold_ms"],
        )


class RemoveForm(ServiceForm):
    remove = forms.ChoiceField(choices=_METRICS)
