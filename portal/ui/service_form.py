"""Forms whose submit is one service call; what the service refuses shows at the form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import ClassVar, TypeVar

from django import forms

from portal.core.errors import DomainError, NotFound

Result = TypeVar("Result")


class ServiceForm(forms.Form):
    """`renamed` maps the service's field names to this form's where they differ."""

    renamed: ClassVar[Mapping[str, str]] = {}
    refusal: DomainError | None = None

    def run(self, call: Callable[[], Result]) -> Result | None:
        """None when the form is invalid or the service refuses. Hidden things stay NotFound."""
        if not self.is_valid():
            return None
        try:
            return call()
        except NotFound:
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
        help_text="Why, for whoever reads this later.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class DecisionForm(CommentForm):
    """One of the buttons of a request; the comment is the reason of an emergency and the finding
    of its review. `evidence_hash` is what the page showed.
    """

    ACTIONS: ClassVar = ("approve", "reject", "withdraw", "emergency", "close_review")
    renamed: ClassVar[Mapping[str, str]] = {"reason": "comment", "finding": "comment"}

    evidence_hash = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    decision = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])


class RolloutForm(ServiceForm):
    """One of the four buttons of a rollout."""

    ACTIONS: ClassVar = ("promote", "promote_fully", "pause", "unpause", "abort")

    evidence_hash = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)
    action = forms.ChoiceField(choices=[(name, name) for name in ACTIONS])
    reason = forms.CharField(max_length=500, required=False, label="Reason")
