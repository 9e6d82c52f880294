"""The form that decides a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from django import forms

from portal.ui.service_form import CommentForm


class DecisionForm(CommentForm):
    """The decision on a request, or a comment without one. The comment is also the reason of an emergency override
    and the finding of its review.

    `evidence_hash` is what the page showed.
    """

    ACTIONS: ClassVar = ("approve", "reject", "withdraw", "emergency", "close_review", "comment")
    renamed: ClassVar[Mapping[str, str]] = {
        "reason": "comment",
        "finding": "comment",
        "text": "comment",
    }

    evidence_hash = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    decision = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])
