"""Domain errors beside the fields they speak of."""

from __future__ import annotations

from django import forms

from portal.core.errors import DomainError


def add_to(form: forms.Form, error: DomainError) -> None:
    """The message goes above the form; each of its `fields` to the field of that name."""
    form.add_error(None, error.message)
    for name, detail in error.fields.items():
        if name in form.fields:
            form.add_error(name, detail)
