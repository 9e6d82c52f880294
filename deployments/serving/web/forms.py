"""The body of one inference request."""

from __future__ import annotations

from django import forms

from portal.ui.service_form import ServiceForm


class BodyForm(ServiceForm):
    body = forms.CharField(
        label="Body",
        help_text="JSON, at most 2 MB.",
        widget=forms.Textarea(attrs={"rows": 9, "spellcheck": "false", "class": "mono"}),
    )
