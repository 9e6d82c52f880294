"""Show domain errors at their form fields."""

from __future__ import annotations

from collections.abc import Mapping

from django import forms

from portal.accounts.local.step_up import StepUpRequired
from portal.core.errors import DomainError


def add_to(
    form: forms.Form, error: DomainError, *, renamed: Mapping[str, str] | None = None
) -> None:
    """Show the message above the form and each of its `fields` at the field of that name; `renamed` maps
    names that differ in the form. StepUpRequired is raised again: it is no fault of the form.
    """
    if isinstance(error, StepUpRequired):
        raise error
    form.add_error(None, error.message)
    for name, detail in error.fields.items():
        field = (renamed or {}).get(name, name)
        if field in form.fields:
            form.add_error(field, detail)
