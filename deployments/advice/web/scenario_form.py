"""One column of the what-if page."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from django import forms

from deployments.advice.domain.what_if import Scenario

_FIELDS: Final = (
    ("price", "usd_per_hour_amount", "Instance price", "$ an hour", 100_000, 6),
    ("replicas", "replicas", "Replicas", "", 10_000, 2),
    ("share", "gpu_share_percent", "Share of the instance", "%", 100, 2),
    ("hours", "hours_per_week", "Hours a week", "of 168", 168, 2),
    ("spot", "spot_percent", "Hours on spot", "%", 100, 2),
    ("discount", "spot_discount_percent", "Spot is lower by", "%", 100, 2),
)
_LONGEST: Final = 100


class ScenarioForm(forms.Form):
    """The prefix says which column. Choosing another instance fills in its price; a price that is typed afterwards
    stays: `priced` is the instance that the shown price is of.
    """

    instance = forms.CharField(
        required=False,
        max_length=_LONGEST,
        widget=forms.TextInput(
            attrs={
                "list": "instances",
                "autocomplete": "off",
                "placeholder": "g5.xlarge us-east-1 spot",
            }
        ),
        help_text="Its price replaces the one below.",
    )
    priced = forms.CharField(required=False, max_length=_LONGEST, widget=forms.HiddenInput)

    def __init__(
        self,
        given: Mapping[str, Any] | None,
        *,
        prefix: str,
        initial: Scenario,
        prices: Mapping[str, Decimal],
    ) -> None:
        self._prices = prices
        data = None if given is None else self._priced(given, prefix)
        super().__init__(data, prefix=prefix, initial=_texts(initial))
        for name, _, label, unit, most, places in _FIELDS:
            self.fields[name] = forms.DecimalField(
                label=label,
                min_value=Decimal(0),
                max_value=Decimal(most),
                decimal_places=places,
                widget=forms.NumberInput(attrs={"data-unit": unit, "step": "any"}),
            )

    def _priced(self, given: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        data = {name: given[name] for name in given}
        instance = " ".join(str(data.get(f"{prefix}-instance", "")).split())
        if instance in self._prices and instance != data.get(f"{prefix}-priced"):
            data[f"{prefix}-price"] = _text(self._prices[instance])
        data[f"{prefix}-instance"] = data[f"{prefix}-priced"] = instance
        return data

    def clean_instance(self) -> str:
        instance: str = self.cleaned_data["instance"]
        if instance and instance not in self._prices:
            raise forms.ValidationError(
                "No price of it is known. Choose one from the list, or leave this empty and enter a price."
            )
        return instance

    @property
    def scenario(self) -> Scenario:
        return Scenario(**{field: self.cleaned_data[name] for name, field, *_ in _FIELDS})


def _text(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _texts(scenario: Scenario) -> dict[str, str]:
    return {name: _text(getattr(scenario, field)) for name, field, *_ in _FIELDS}
