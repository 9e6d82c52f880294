"""Forms that submit to one service call and show its refusal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import ClassVar, TypeVar

from django import forms

from portal.accounts.local.step_up import StepUpRequired
from portal.core.errors import Conflict, DomainError, NotFound
from portal.ui import kept_input

Result = TypeVar("Result")


class ServiceForm(forms.Form):
    """A form whose errors come from a service. `renamed` maps the service's field names to this form's where they
    differ.
    """

    renamed: ClassVar[Mapping[str, str]] = {}
    refusal: DomainError | None = None

    def run(self, call: Callable[[], Result]) -> Result | None:
        """Call the service; None when the form is invalid or the service refuses. NotFound and
        StepUpRequired propagate.
        """
        is_valid = self.is_valid()
        if why := kept_input.why_shown_again():
            self.refuse(Conflict(why, code="not_sent"))
            return None
        if not is_valid:
            return None
        try:
            return call()
        except (NotFound, StepUpRequired):
            raise
        except DomainError as error:
            self.refuse(error)
            return None

    def refuse(self, error: DomainError) -> None:
        self.refusal = error
        for name, message in error.fields.items():
            field = self.renamed.get(name, name)
            if field in self.fields:
                self.add_error(field, message)
        self.add_error(None, error.message)

    @property
    def status(self) -> int:
        if self.refusal is not None:
            return int(self.refusal.status)
        if self.is_bound and not self.is_valid():
            return int(HTTPStatus.UNPROCESSABLE_ENTITY)
        return int(HTTPStatus.OK)


class CommentForm(ServiceForm):
    comment = forms.CharField(
        required=False,
        max_length=2000,
        label="Comment",
        help_text="Kept in the history.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )
