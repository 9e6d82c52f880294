"""The forms of fleet actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from django import forms

from fleet.actions.domain.drain_settings import DEFAULT_MINUTES, FEWEST_MINUTES, MOST_MINUTES
from portal.ui.service_form import CommentForm


class DrainForm(CommentForm):
    deadline_minutes = forms.IntegerField(
        label="Deadline",
        initial=DEFAULT_MINUTES,
        min_value=FEWEST_MINUTES,
        max_value=MOST_MINUTES,
        help_text="Minutes from its start. Pods that budgets still hold then make the drain fail.",
    )
    evict_unmanaged = forms.BooleanField(
        label="Evict pods without a controller",
        required=False,
        help_text="Nothing starts them again. Without this, a node with such pods is not drained.",
    )


class DecisionForm(CommentForm):
    """One of the buttons of an action's page. `evidence_hash` is what the page showed."""

    ACTIONS: ClassVar = ("approve", "reject", "withdraw", "cancel")
    renamed: ClassVar[Mapping[str, str]] = {"reason": "comment"}

    evidence_hash = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    decision = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])
