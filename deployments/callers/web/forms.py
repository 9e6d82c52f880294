"""The forms of a deployment's callers."""

from __future__ import annotations

from django import forms

from deployments.callers.services import keys
from deployments.callers.services.keys import KeyDraft
from deployments.states import ConsumerKind
from portal.ui.service_form import ServiceForm

_DAYS = [(str(days), f"{days} days") for days in (7, 30, 90, 180, keys.MAX_DAYS)]
_OVERLAPS = [("0", "now"), ("1", "in 1 hour"), ("24", "in 24 hours"), ("168", "in 7 days")]


class NewKeyForm(ServiceForm):
    name = forms.CharField(
        max_length=40,
        label="Caller",
        help_text="Lowercase letters, digits and hyphens. An existing name gets a further key.",
    )
    kind = forms.ChoiceField(
        choices=[(ConsumerKind.SERVICE, "Service"), (ConsumerKind.PERSON, "Person")], label="Kind"
    )
    contact = forms.CharField(
        max_length=200,
        required=False,
        label="Contact",
        help_text="Whom to ask before the key ends. Needed for a new caller.",
    )
    days = forms.ChoiceField(choices=_DAYS, initial=str(keys.DEFAULT_DAYS), label="Valid for")

    requests_per_minute = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=keys.MAX_REQUESTS_PER_MINUTE,
        label="Requests a minute",
        help_text="The gateway answers 429 to more. Empty: no limit.",
    )

    def draft(self) -> KeyDraft:
        data = self.cleaned_data
        return KeyDraft(
            name=data["name"],
            kind=ConsumerKind(data["kind"]),
            contact=data["contact"],
            days=int(data["days"]),
            requests_per_minute=data["requests_per_minute"],
        )


class KeyForm(ServiceForm):
    """What to do with one key."""

    action = forms.ChoiceField(
        choices=[("rotate", "Rotate"), ("limit", "Set limit"), ("revoke", "Revoke")]
    )
    key_id = forms.IntegerField(min_value=1)
    overlap_hours = forms.ChoiceField(
        choices=_OVERLAPS, initial=str(keys.DEFAULT_OVERLAP_HOURS), required=False
    )

    requests_per_minute = forms.IntegerField(
        required=False, min_value=1, max_value=keys.MAX_REQUESTS_PER_MINUTE, label="Limit"
    )

    def overlap(self) -> int:
        return int(self.cleaned_data["overlap_hours"] or keys.DEFAULT_OVERLAP_HOURS)
