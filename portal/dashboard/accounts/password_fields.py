"""A new password, typed twice."""

from __future__ import annotations

from typing import Any, Final

from django import forms

from portal.accounts.local.new_accounts import MAX_PASSWORD
from portal.ui.service_form import ServiceForm

_NEW: Final = {"autocomplete": "new-password"}


class NewPasswordForm(ServiceForm):
    """The service validates the password; `renamed` shows its verdict at the first field."""

    password = forms.CharField(
        label="New password",
        max_length=MAX_PASSWORD,
        strip=False,
        help_text="At least 12 characters. A few words that nobody would guess are best.",
        widget=forms.PasswordInput(attrs=_NEW),
    )
    repeated = forms.CharField(
        label="Repeat it",
        max_length=MAX_PASSWORD,
        strip=False,
        widget=forms.PasswordInput(attrs=_NEW),
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("password") and data.get("repeated") not in (None, data["password"]):
            self.add_error("repeated", "The passwords differ. Type the new one again.")
        return data
