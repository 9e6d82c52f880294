"""The forms of a deployment's callers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from django import forms

from deployments.callers.services import keys, limits
from deployments.callers.services.issuing import KeyLimits
from deployments.callers.services.keys import KeyDraft
from deployments.models import TokenIssuer
from deployments.states import ConsumerKind
from portal.ui.service_form import ServiceForm

_OVERLAPS = [
    ("0", "now"),
    ("1", "in 1 hour"),
    ("24", "in 24 hours"),
    ("168", "in 7 days"),
    (str(keys.MAX_OVERLAP_HOURS), "in 30 days"),
]


_LIMITS = {
    "requests_per_minute": "requests a minute",
    "tokens_per_minute": "tokens a minute",
    "tokens_per_day": "tokens a day",
}


class _KeyTerms(ServiceForm):
    """The limits and lifetime of a key. The platform's maximum is a setting, so it is read for each form."""

    requests_per_minute = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=limits.MAX_REQUESTS_PER_MINUTE,
        label="Requests a minute",
        help_text="Requests above it get status 429. Leave empty for no limit.",
    )
    tokens_per_minute = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=limits.MAX_TOKENS_PER_MINUTE,
        label="Tokens a minute",
        help_text="The key is paused seconds after it exceeds this. Leave empty for no limit.",
    )
    tokens_per_day = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=limits.MAX_TOKENS_PER_DAY,
        label="Tokens a day",
        help_text="Counted until midnight UTC. Leave empty for no limit.",
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        days = self.fields["days"]
        days.initial = keys.default_days()
        days.widget.attrs |= {"min": 1, "max": keys.max_days()}
        days.help_text = f"1 to {keys.max_days()}. The key stops working then."

    def stated_limits(self) -> KeyLimits:
        data = self.cleaned_data
        return KeyLimits(
            data["requests_per_minute"], data["tokens_per_minute"], data["tokens_per_day"]
        )


class NewKeyForm(_KeyTerms):
    name = forms.CharField(
        max_length=40,
        label="Caller",
        help_text="Lowercase letters, digits and hyphens. An existing name gets another key.",
    )
    kind = forms.ChoiceField(
        choices=[(ConsumerKind.SERVICE, "Service"), (ConsumerKind.PERSON, "Person")], label="Kind"
    )
    contact = forms.CharField(
        max_length=200,
        required=False,
        label="Contact",
        help_text="Who to contact before the key ends. Needed for a new caller.",
    )
    days = forms.IntegerField(
        label="Valid for", widget=forms.NumberInput(attrs={"data-unit": "days"})
    )
    token_issuer = forms.ChoiceField(required=False, label="Calls with")
    claim_value = forms.CharField(
        required=False,
        max_length=200,
        label="Value of the claim",
        help_text="For a token: the value of its claim. Leave empty for a key.",
    )

    def __init__(
        self, *args: Any, issuers: Iterable[TokenIssuer] = (), issuer: str = "", **more: Any
    ) -> None:
        """Offer keys and tokens of `issuers`. `issuer` is the one that the deployment accepts now; empty if it
        takes keys.
        """
        super().__init__(*args, **more)
        named = [(row.name, f"a token of {row.name}: its {row.claim}") for row in issuers]
        field = cast("forms.ChoiceField", self.fields["token_issuer"])
        field.choices = [("", "a key"), *named]
        field.initial = issuer

    @property
    def terms_in_words(self) -> str:
        """The kind, the lifetime and the limits as the form has them: "service, 90 days, no limits"."""
        values = {name: self[name].value() for name in (*_LIMITS, "days", "kind")}
        limits_ = [f"{values[name]} {text}" for name, text in _LIMITS.items() if values[name]]
        kind = values["kind"] or ConsumerKind.SERVICE
        days = f"{values['days']} {'day' if str(values['days']) == '1' else 'days'}"
        return ", ".join([str(kind), days, *(limits_ or ["no limits"])])

    def draft(self) -> KeyDraft:
        data = self.cleaned_data
        return KeyDraft(
            name=data["name"],
            kind=ConsumerKind(data["kind"]),
            contact=data["contact"],
            days=data["days"],
            limits=self.stated_limits(),
            token_issuer=data["token_issuer"],
            claim_value=data["claim_value"],
        )


class KeyForm(_KeyTerms):
    """An action on one key: rotate it, set its limits or revoke it."""

    action = forms.ChoiceField(
        choices=[("rotate", "Rotate"), ("limit", "Set limit"), ("revoke", "Revoke")]
    )
    key_id = forms.IntegerField(min_value=1)
    overlap_hours = forms.ChoiceField(
        choices=_OVERLAPS, initial=str(keys.DEFAULT_OVERLAP_HOURS), required=False
    )
    # Of the new key.
    days = forms.IntegerField(required=False)

    def overlap(self) -> int:
        return int(self.cleaned_data["overlap_hours"] or keys.DEFAULT_OVERLAP_HOURS)
