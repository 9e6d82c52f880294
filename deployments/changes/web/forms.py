"""Forms that request a change of an existing deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from django import forms

from deployments.changes.web.fields import required_field
from deployments.models import Deployment, Revision
from portal.ui.service_form import CommentForm


class RollBackForm(CommentForm):
    renamed: ClassVar[Mapping[str, str]] = {"revision_number": "revision"}

    revision = forms.ChoiceField(
        label="Roll back to", error_messages={"required": "Choose a revision."}
    )

    def __init__(self, *args: Any, revisions: Sequence[Revision], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = [
            (str(revision.number), f"r{revision.number} · {revision.version.label}")
            for revision in revisions
        ]
        cast("forms.ChoiceField", self.fields["revision"]).choices = offered


class ScaleForm(CommentForm):
    min_replicas = required_field("min_replicas")
    max_replicas = required_field("max_replicas")


class StopForm(CommentForm):
    renamed: ClassVar[Mapping[str, str]] = {"reason": "comment"}


class RetireForm(CommentForm):
    confirmation = forms.CharField(
        label="Deployment name",
        help_text="Type the name to confirm. The endpoint stops responding.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, deployment: Deployment, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._name = deployment.name

    def clean_confirmation(self) -> str:
        typed: str = self.cleaned_data["confirmation"].strip()
        if typed != self._name:
            raise forms.ValidationError(f"Type {self._name} to confirm.")
        return typed
