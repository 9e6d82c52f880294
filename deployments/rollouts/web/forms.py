"""The buttons of a rollout."""

from __future__ import annotations

from typing import ClassVar

from django import forms

from portal.ui.service_form import ServiceForm


class RolloutForm(ServiceForm):
    """The form of a button of a rollout."""

    ACTIONS: ClassVar = ("promote", "promote_fully", "pause", "unpause", "abort", "finish_watch")

    evidence_hash = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    action = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])
    # Of promoting fully: on the page that says what it moves.
    confirmed = forms.BooleanField(required=False)
    reason = forms.CharField(max_length=500, required=False, label="Reason")

    @property
    def needs_confirmation(self) -> bool:
        data = self.cleaned_data
        return data["action"] == "promote_fully" and not data["confirmed"]
