"""The form of a team's delivery through Git."""

from __future__ import annotations

from dataclasses import fields

from django import forms

from deployments.delivery.services.git_settings import GitDraft
from deployments.models import GitDelivery


class GitForm(forms.Form):
    """The way in which a team's changes reach its clusters."""

    method = forms.ChoiceField(
        label="Delivery",
        choices=[
            ("direct", "Direct: the portal applies changes"),
            ("git", "Through Git: Argo CD or Flux applies commits"),
        ],
    )
    repository_url = forms.CharField(
        label="Repository",
        max_length=300,
        required=False,
        help_text="For example https://git.example.com/platform/fleet.git",
    )
    branch = forms.CharField(max_length=100, initial="main")
    path = forms.CharField(
        label="Folder",
        max_length=200,
        required=False,
        help_text="Leave empty for the root of the repository.",
    )
    username = forms.CharField(max_length=100, required=False)
    credential = forms.CharField(
        label="Token",
        max_length=100,
        required=False,
        help_text="Name of the token file in the folder of Git credentials, not the token itself.",
    )

    @classmethod
    def from_delivery(cls, delivery: GitDelivery | None) -> GitForm:
        if delivery is None:
            return cls()
        names = [field.name for field in fields(GitDraft)]
        current = {name: getattr(delivery, name) for name in names}
        return cls(initial=current | {"method": "git" if delivery.is_enabled else "direct"})

    def draft(self) -> GitDraft:
        values = dict(self.cleaned_data)
        return GitDraft(is_enabled=values.pop("method") == "git", **values)
