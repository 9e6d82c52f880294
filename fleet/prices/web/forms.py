"""The form of a price, and the filter of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from fleet.gpus.domain import capacity_types
from fleet.prices.domain.price_rows import HARDWARE
from fleet.prices.selectors import price_list
from fleet.prices.selectors.price_list import FLEET_FIRST, SORTS, PriceFilter
from portal.core import clock
from portal.ui.lists import FilterForm, plain_input, plain_select


def _region_choices() -> list[tuple[str, str]]:
    return [("", "Any region"), *((name, name) for name in price_list.list_regions())]


class PriceFilterForm(FilterForm):
    sorts = tuple(sign + name for name in SORTS for sign in ("", "-"))
    default_sort = FLEET_FIRST

    q = forms.CharField(
        required=False,
        max_length=80,
        widget=plain_input("Type, GPU or source", "Search prices", kind="search"),
    )
    region = forms.ChoiceField(
        required=False, choices=_region_choices, widget=plain_select("Region")
    )
    capacity = forms.ChoiceField(
        required=False,
        choices=[("", "Any capacity"), *capacity_types.LABELS.items()],
        widget=plain_select("Capacity"),
    )

    @property
    def price_filter(self) -> PriceFilter:
        chosen = self.cleaned_data
        return PriceFilter(
            search=chosen.get("q") or "",
            region=chosen.get("region") or "",
            capacity_type=chosen.get("capacity") or "",
        )


class PriceForm(forms.Form):
    """One price. The hardware is needed only for a type of which nothing is known."""

    instance_type = forms.CharField(
        max_length=40,
        widget=forms.TextInput(attrs={"list": "known-types", "class": "mono"}),
        help_text="For your own hardware, the node's instance type, or its GPU product if it has none.",
    )
    region = forms.CharField(
        max_length=30, help_text="Region of the node, or of its cluster if the node has none."
    )
    capacity_type = forms.ChoiceField(
        label="Capacity",
        choices=list(capacity_types.LABELS.items()),
        help_text=f"AWS labels on-demand, spot, reserved and capacity-block nodes. Label others {capacity_types.LABEL}.",
    )
    usd_per_hour = forms.CharField(
        label="$ per hour",
        max_length=20,
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
        help_text="Per node. For your own hardware, per node with the GPUs below; nodes with more or fewer GPUs cost in proportion.",
    )
    valid_from = forms.DateField(
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text="Sealed hours keep the price they were sealed with.",
    )
    source = forms.CharField(
        max_length=200, required=False, help_text="For example, the contract and its number."
    )
    gpu_name = forms.CharField(label="GPU", max_length=30, required=False)
    gpu_count = forms.IntegerField(label="GPUs", min_value=1, required=False)
    gpu_memory_mib = forms.IntegerField(label="GPU memory, MiB", min_value=0, required=False)
    vcpu = forms.IntegerField(label="vCPUs", min_value=0, required=False)
    memory_gib = forms.IntegerField(label="Memory, GiB", min_value=0, required=False)

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, initial: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(data, initial={"valid_from": clock.now().date(), **(initial or {})})

    def row(self) -> dict[str, str]:
        """Return the entered price as a line of a price list."""
        row = {name: str(value or "") for name, value in self.cleaned_data.items()}
        if any(row.get(name) for name in HARDWARE):
            row.update(
                {name: row.get(name) or "0" for name in ("gpu_memory_mib", "vcpu", "memory_gib")}
            )
        return row
