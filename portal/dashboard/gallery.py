"""The page /ui/ for platform admins: every component in every state, in both themes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.accounts.models import User
from portal.core.definitions.time_slots import Gap
from portal.core.errors import Conflict
from portal.ui import charts
from portal.ui.admin_pages import admins_only
from portal.ui.components import COMPONENTS
from portal.ui.context import THEMES
from portal.ui.docs import api_reference
from portal.ui.vega.marks import Mark

_START: Final = datetime(2026, 11, 25, 9, tzinfo=UTC)
_STEP: Final = timedelta(minutes=5)
_STATES: Final = ("ready", "degraded", "failed", "canary", "progressing", "stopped")


class ExampleForm(forms.Form):
    name = forms.CharField(help_text="Lowercase letters, digits and '-'.")
    memory = forms.IntegerField(widget=forms.NumberInput(attrs={"data-unit": "GiB"}))
    owner = forms.CharField(required=False)
    environment = forms.ChoiceField(
        choices=[("staging", "Staging"), ("production", "Production")],
        initial="staging",
        disabled=True,
    )
    notes = forms.CharField(required=False, widget=forms.Textarea(attrs={"rows": 3}))
    file = forms.FileField(required=False)
    is_warm = forms.BooleanField(label="Keep the old revision warm", required=False)


@dataclass(frozen=True, slots=True)
class _Stair:
    weight: int
    seconds: float
    duration: str
    text: str
    is_watch: bool = False


@require_safe
@admins_only
def show_components(request: HttpRequest, user: User) -> HttpResponse:
    context = {
        "components": COMPONENTS,
        "themes": [(theme, _make_examples(theme)) for theme in THEMES],
    }
    return render(request, "gallery/gallery.html", context)


def _make_examples(theme: str) -> Mapping[str, Any]:
    """Make the data of the examples. Names of fields and charts begin with the theme: the page has each twice."""
    forms = {
        part: ExampleForm(
            {f"{theme}-{part}-name": "detector", f"{theme}-{part}-memory": "lots"},
            prefix=f"{theme}-{part}",
        )
        for part in ("form", "fold", "sign")
    }
    return {
        **forms,
        "states": _STATES,
        "now": _START,
        "money": Decimal("0.605785"),
        "ratio": 0.12345,
        "trend": [3, 4, None, 6, 5, 8],
        "flat_trend": [0, 0, 0],
        "no_trend": [None, 3],
        "checks": _CHECKS,
        "stairs": _STAIRS,
        "gpu_parts": _GPU_PARTS,
        "diff": _DIFF,
        "rows": range(60),
        "line_name": f"{theme}-lines",
        "line_chart": _draw_lines(),
        "bar_name": f"{theme}-bars",
        "bar_chart": _draw_bars(),
        "answer": _ANSWER,
        "methods": ("get", "post", "put", "patch", "delete"),
        "operation": replace(_read_operation(), name=f"{theme}-operation"),
        "error": Conflict("Another request changed this deployment. Reload the page, then decide."),
    }


def _read_operation() -> api_reference.Operation:
    """Read the first operation that has all that one can have."""
    operations = [each for group in api_reference.list_groups() for each in group.operations]
    return next(each for each in operations if each.parameters and each.body and each.headers)


def _draw_lines() -> charts.Chart:
    values = {
        "stable": (41.0, 43.5, None, None, 44.0, 42.0),
        "candidate": (52, 55, None, None, 61, 58),
    }
    points = [
        charts.Point(_START + number * _STEP, series, value)
        for series, line in values.items()
        for number, value in enumerate(line)
    ]
    gap = Gap(_START + 2 * _STEP, _START + 4 * _STEP, "No requests")
    window = charts.TimeWindow(_START, _START + 6 * _STEP, _STEP, (gap,))
    mark = Mark(_START + _STEP, "Canary 25%")
    return charts.lines(
        label="Latency p95", points=points, unit="ms", threshold=70, marks=[mark], window=window
    )


def _draw_bars() -> charts.Chart:
    amounts = {"detector": (12, 14, 13), "ranker": (4, 5, 9), "idle": (3, 2, 2)}
    bars = [
        charts.Bar(_START + timedelta(days=day), series, Decimal(amount))
        for series, days in amounts.items()
        for day, amount in enumerate(days)
    ]
    return charts.stacked_bars(label="Cost by day", bars=bars, unit="$")


_CHECKS: Final = (
    {"name": "Fits now", "ok": True, "detail": "4 of 4 GPUs free on 1 node"},
    {"name": "Budget", "ok": False, "detail": "$120 above the budget", "fix": "Ask for more"},
    {"name": "Golden requests", "ok": None, "detail": "Not run yet", "fix": "Save one first"},
)
_STAIRS: Final = (
    _Stair(5, 900, "15 min", "5% for 15 min"),
    _Stair(25, 1800, "30 min", "25% for 30 min"),
    _Stair(50, 3600, "1 h", "50% for 1 h"),
    _Stair(100, 3600, "watched for 1 h", "100%, watched for 1 h", is_watch=True),
)
_GPU_PARTS: Final = tuple(
    [{"width": 100, "css": css, "title": f"GPU {number}", "text": text, "url": ""}]
    for number, (css, text) in enumerate(
        [
            ("use-4", "92%"),
            ("use-3", "64%"),
            ("use-2", "45%"),
            ("use-1", "20%"),
            ("use-0", "0%"),
            ("use-unknown", "?"),
            ("free", "free"),
            ("tainted", "tainted"),
        ]
    )
)
_ANSWER: Final = {
    "outputs": [
        {
            "name": "scores",
            "datatype": "FP32",
            "shape_text": "1, 2",
            "items": [
                {
                    "classes": [
                        {"name": "cat", "percent": 92, "score": "0.92"},
                        {"name": "dog", "percent": 8, "score": "0.08"},
                    ]
                }
            ],
        }
    ]
}
_DIFF: Final = (
    {"kind": "gap", "text": "12 unchanged lines"},
    {"kind": "same", "text": "spec:"},
    {"kind": "removed", "text": "  replicas: 1"},
    {"kind": "added", "text": "  replicas: 2"},
)
