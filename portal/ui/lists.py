"""Filters and sortable columns of a table. Their state is in the query string."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, ClassVar

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import HttpRequest

from portal.ui.addresses import with_query

_DAY = timedelta(days=1)
_FIRST_DAY = date(1900, 1, 1)


class FilterForm(forms.Form):
    """The filters of a table. Invalid values are ignored."""

    sorts: ClassVar[Sequence[str]] = ()
    default_sort: ClassVar[str] = ""

    sort = forms.ChoiceField(required=False, widget=forms.HiddenInput)

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.GET)
        self.fields["sort"] = forms.ChoiceField(
            required=False,
            widget=forms.HiddenInput,
            choices=[(name, name) for name in self.sorts],
        )
        self.is_valid()

    @property
    def filters(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if name != "sort"}

    @property
    def is_filtered(self) -> bool:
        return any(self.filters.values())

    @property
    def order(self) -> str:
        return self.cleaned_data.get("sort") or self.default_sort


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table that can be sorted. `direction` is the value of aria-sort, or empty."""

    title: str
    address: str
    direction: str


def sortable_columns(
    request: HttpRequest, order: str, titles: Mapping[str, str]
) -> dict[str, Column]:
    """Return the columns by sort key. The link of the sorted column reverses its order."""
    return {
        key: Column(
            title,
            with_query(request, sort=f"-{key}" if order == key else key, page=None),
            {key: "ascending", f"-{key}": "descending"}.get(order, ""),
        )
        for key, title in titles.items()
    }


def plain_input(placeholder: str, label: str, *, kind: str = "text") -> forms.TextInput:
    attrs = {"class": "plain", "type": kind, "placeholder": placeholder, "aria-label": label}
    return forms.TextInput(attrs=attrs)


def day_field() -> forms.DateField:
    """Return a filter's day field, which refuses the last day there is, because periods end on the day after, and
    days so early that there is none before them.
    """
    bounds = (MinValueValidator(_FIRST_DAY), MaxValueValidator(date.max - _DAY))
    return forms.DateField(required=False, validators=bounds)


def plain_select(label: str) -> forms.Select:
    return forms.Select(attrs={"class": "plain", "aria-label": label})
