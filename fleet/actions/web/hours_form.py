"""The form of a pool's office hours: a line for each weekday."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django import forms
from django.forms import BoundField

from fleet.office_hours.domain import hours as hour_rules
from fleet.office_hours.domain.hours import DAYS, MOST_CLOSED, OfficeHours
from portal.ui.service_form import CommentForm

_EXAMPLES: Final = ("07:30", "22:00")


@dataclass(frozen=True, slots=True)
class DayFields:
    start: BoundField
    end: BoundField


class OfficeHoursForm(CommentForm):
    """The form of office hours, with `monday_start` and `monday_end` to Sunday. Both empty means closed all day."""

    renamed: ClassVar[Mapping[str, str]] = {"days": "monday_start"}

    timezone = forms.CharField(
        label="Time zone", max_length=60, help_text="IANA name, for example Europe/Berlin."
    )
    closed_size = forms.IntegerField(
        label="Outside office hours",
        min_value=0,
        max_value=MOST_CLOSED,
        help_text="At most the size in office hours.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for day in DAYS:
            for part, example in zip(("start", "end"), _EXAMPLES, strict=True):
                self.fields[f"{day}_{part}"] = forms.CharField(
                    label=f"{day.capitalize()}, {'from' if part == 'start' else 'to'}",
                    required=False,
                    max_length=5,
                    widget=forms.TextInput(attrs={"placeholder": example, "inputmode": "numeric"}),
                )

    @property
    def days(self) -> Iterator[DayFields]:
        for day in DAYS:
            yield DayFields(self[f"{day}_start"], self[f"{day}_end"])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        for day in DAYS:
            start, end = (str(data.get(f"{day}_{part}") or "") for part in ("start", "end"))
            if bool(start) != bool(end):
                self.add_error(f"{day}_{'end' if start else 'start'}", "Fill in both, or neither.")
            for part, text in (("start", start), ("end", end)):
                minutes = hour_rules.read_clock(text)
                if text and (minutes is None or (part == "start" and text == "24:00")):
                    self.add_error(f"{day}_{part}", "Write it as hh:mm, for example 07:30.")
        return data

    @property
    def hours(self) -> OfficeHours:
        data = self.cleaned_data
        days = {
            day: [data[f"{day}_start"], data[f"{day}_end"]] if data[f"{day}_start"] else None
            for day in DAYS
        }
        return OfficeHours.from_json({**data, "days": days})


def build_initial(hours: OfficeHours | None) -> dict[str, Any]:
    """Return the initial values of the form: a working week if there are no office hours yet."""
    if hours is None:
        return {
            "timezone": "UTC",
            "closed_size": 0,
            **{f"{day}_start": _EXAMPLES[0] for day in DAYS[:5]},
            **{f"{day}_end": _EXAMPLES[1] for day in DAYS[:5]},
        }
    initial: dict[str, Any] = {"timezone": hours.timezone, "closed_size": hours.closed_size}
    for day, window in zip(DAYS, hours.days, strict=True):
        if window is not None:
            initial[f"{day}_start"] = hour_rules.clock_text(window.start)
            initial[f"{day}_end"] = hour_rules.clock_text(window.end)
    return initial
