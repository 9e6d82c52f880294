"""Forms that take a passkey in place of what is typed."""

from __future__ import annotations

from typing import ClassVar

from django import forms

from portal.ui.service_form import ServiceForm


class PasskeyForm(ServiceForm):
    """A form that a passkey can confirm. `passkey` is the browser's answer, as JSON; with it the field `typed` may
    be empty.
    """

    typed: ClassVar[str]

    passkey = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # what a request posts
        if self.is_bound and self.data.get("passkey"):
            self.fields[self.typed].required = False
