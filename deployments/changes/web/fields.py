"""The fields of a new deployment that may be left as they are; their texts are the spec's own."""

from __future__ import annotations

from typing import Any

from django import forms

from deployments.changes.web import request_body
from deployments.changes.web.request_body import ADDITIONAL_MODELS, DEFINITIONS
from portal.ui import definition_fields

_ADDITIONAL_HELP = (
    "One of the team's ready versions.",
    "",
    "The API accepts up to eight, each with its own settings.",
)
_ORDINALS = ("First", "Second", "Third")


class SettingsForm(forms.Form):
    """A form with every setting of the spec. The spec checks them, so each has the same fix as in the API."""

    # Load for the GPU sizing; not part of the request.
    requests_per_second = forms.CharField(
        label="Expected traffic",
        required=False,
        max_length=300,
        help_text="Chooses the GPU and the replicas. Leave empty if not known.",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "data-unit": "requests/s"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for setting in request_body.SETTINGS.values():
            self.fields[setting.name] = definition_fields.form_field(setting.definition)
        for name, label, help_text in zip(
            ADDITIONAL_MODELS, _ORDINALS, _ADDITIONAL_HELP, strict=True
        ):
            self.fields[name] = forms.ChoiceField(label=label, required=False, help_text=help_text)


def required_field(name: str) -> forms.Field:
    """Return the form field of a setting of the spec that is always in the request."""
    return definition_fields.required_field(DEFINITIONS[name])
