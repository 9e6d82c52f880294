"""Domain errors beside the fields they speak of."""

from __future__ import annotations

from collections.abc import Mapping

from django import forms

from portal.core.errors import DomainError


def add_to(
    form: forms.Form, error: DomainError, *, renamed: Mapping[str, str] | None = None
) -> None:
    """The message goes above the form; each of its `fields` to the field of that name, or of the
    name that the form has for it.
    """
    form.add_error(None, error.message)
    for name, detail in error.fields.items():
        field = (renamed or {}).get(name, name)
        if field in form.fields:
            form.add_error(field, detail)
