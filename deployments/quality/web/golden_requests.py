"""Saving and deleting golden requests of a model."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from deployments.models import GoldenRequest, Model
from deployments.quality.domain import golden_requests as quality_golden_requests
from deployments.quality.services import golden_requests
from deployments.quality.web import lines
from deployments.registry.selectors import versions
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import documents
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import respond
from portal.ui.service_form import ServiceForm

# Request, answer and tolerances in one document, written with spaces.
_GOLDEN = documents.Bounds(most_bytes=4 * quality_golden_requests.MOST_BYTES)


def _json_of(text: str | bytes) -> Any:
    try:
        return documents.read_json(text, _GOLDEN)
    except documents.UnreadableDocument as error:
        place = f"{error.place}: " if error.place else ""
        raise forms.ValidationError(f"{place}{error.message}") from error


class JsonField(forms.CharField):
    """A text that is JSON; the service checks its content."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        return _json_of(text)


class AnswerForm(ServiceForm):
    """The answer that Try it has just got."""

    name = forms.CharField(max_length=quality_golden_requests.LONGEST_NAME)
    request = JsonField()
    expected = JsonField()
    version_id = forms.IntegerField(required=False, min_value=1)


class GoldenForm(ServiceForm):
    """A whole golden request as JSON: pasted, or as a file."""

    name = forms.CharField(
        max_length=quality_golden_requests.LONGEST_NAME,
        label="Name",
        help_text="An existing name gets its next number.",
    )
    document = JsonField(
        required=False,
        label="JSON",
        help_text="JSON with request, expected and optional tolerances by output.",
        widget=forms.Textarea(attrs={"rows": 16, "spellcheck": "false", "class": "mono"}),
    )
    file = forms.FileField(required=False, label="Or a file", help_text="At most 512 KiB.")

    def clean_file(self) -> Any:
        upload = self.cleaned_data.get("file")
        if upload is None:
            return None
        if upload.size > 2 * quality_golden_requests.MOST_BYTES:
            raise forms.ValidationError(f"The file has {upload.size:,} bytes.")
        return _json_of(upload.read())

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        document = data.get("file") or data.get("document")
        known = {"request", "expected", "tolerances"}
        if not self.errors and (not isinstance(document, dict) or not set(document) <= known):
            raise forms.ValidationError(f"Enter a JSON object with {', '.join(sorted(known))}.")
        return data

    def parts(self) -> dict[str, Any]:
        document = self.cleaned_data.get("file") or self.cleaned_data["document"]
        return {name: document.get(name) for name in ("request", "expected", "tolerances")}


@require_POST
@people_only
def save_answer(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    """Save an answer from Try it; redirects to the model, or shows the form with the refusal."""
    model = versions.get_model(actor=user, team_slug=team, name=name)
    form = AnswerForm(request.POST)
    saved = form.run(
        lambda: golden_requests.save(
            actor=user, team_slug=team, model_name=name, **form.cleaned_data
        )
    )
    if saved is not None:
        return _saved(request, saved)
    return _show(request, model, form, GoldenForm(initial=_pasted(form)))


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def new_golden(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    model = versions.get_model(actor=user, team_slug=team, name=name)
    policy.require(user, Action.UPLOAD, model)
    initial = {"document": lines.example_of(model)}
    form = GoldenForm(request.POST or None, request.FILES or None, initial=initial)
    if request.method == "POST":
        saved = form.run(
            lambda: golden_requests.save(
                actor=user,
                team_slug=team,
                model_name=name,
                name=form.cleaned_data["name"],
                **form.parts(),
            )
        )
        if saved is not None:
            return _saved(request, saved)
    return _show(request, model, form, form)


@require_POST
@people_only
def delete_golden(
    request: HttpRequest, user: User, team: str, name: str, golden_id: int
) -> HttpResponse:
    row = golden_requests.retire(actor=user, golden_id=golden_id)
    messages.success(request, f"Golden request {row.name} deleted.")
    return redirect("model", team=team, name=name)


def _saved(request: HttpRequest, row: GoldenRequest) -> HttpResponse:
    message = f"Golden request {row.name} saved as no. {row.number}."
    messages.success(request, f"{message} Later candidates must match this answer.")
    return redirect("model", team=row.team.slug, name=row.model.name)


def _show(
    request: HttpRequest, model: Model, refused: ServiceForm, form: GoldenForm
) -> HttpResponse:
    """Show the form with the errors. `refused` may be another form than the one that is shown; then all its
    errors are shown.
    """
    lists = [refused.non_field_errors()] if refused is form else refused.errors.values()
    errors = [str(error) for errors in lists for error in errors]
    context = {"model": model, "form": form, "errors": errors}
    return respond(request, "quality/new_golden.html", context, status=refused.status)


def _pasted(form: AnswerForm) -> dict[str, Any]:
    """Return the form's content as it was sent, including what the form refuses."""
    texts = {name: form[name].data or "" for name in ("request", "expected")}
    document = ",\n".join(f'"{name}": {text}' for name, text in texts.items())
    return {"name": form["name"].data or "", "document": "{\n" + document + "\n}"}
