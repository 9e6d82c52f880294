"""Try it: send one request from the page through the gateway.

A request is entered in a field for each input, or as JSON. After each of them the other shows the same request, and so
does the code beside it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django import forms
from django.forms import BoundField
from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_http_methods

from deployments.models import Deployment, GoldenRequest
from deployments.pages.web import frame
from deployments.quality.selectors import quality
from deployments.quality.web import lines
from deployments.serving.domain import inference_call, request_inputs, request_snippets
from deployments.serving.domain.request_inputs import (
    InputKind,
    InputText,
    PictureLayout,
    RequestInput,
)
from deployments.serving.domain.request_snippets import RequestAddress
from deployments.serving.selectors import deployments
from deployments.serving.services import try_it as serving_try_it
from deployments.serving.services.try_it import TrialResponse, TrialTarget
from deployments.serving.web.forms import BodyForm
from portal.accounts.models import User
from portal.ui.access import people_only

# The button that sends the fields; that of the JSON has another value.
_FROM_INPUTS: Final = "inputs"


@dataclass(frozen=True, slots=True)
class StartingRequest:
    """The request that the page begins with. `texts` is None where it can only be shown as JSON."""

    inputs: tuple[RequestInput, ...]
    body: dict[str, Any] | None
    texts: tuple[InputText, ...] | None

    @property
    def text(self) -> str:
        return _format_body(self.body)


@dataclass(frozen=True, slots=True)
class InputRow:
    """An input with its bound fields. `shape` is None where the number of values says it, `picture` where no picture
    becomes this input.
    """

    input: RequestInput
    values: BoundField
    shape: BoundField | None
    picture: PictureLayout | None


class TryForm(BodyForm):
    """The form of a trial request. `target` is shown only while there are two revisions."""

    use_required_attribute = False

    def __init__(
        self, deployment: Deployment, start: StartingRequest, data: QueryDict | None = None
    ) -> None:
        initial = {"body": start.text, "target": TrialTarget.GATEWAY}
        self._entered = data.copy() if data else QueryDict(mutable=True)
        super().__init__(self._entered if data else None, initial=initial)
        self.inputs = start.inputs
        self.sends_inputs = bool(start.inputs and data and data.get("source", "") == _FROM_INPUTS)
        # The request as it was sent.
        self.sent = ""
        self.fields["body"].required = not self.sends_inputs
        self.fields["target"] = forms.ChoiceField(
            label="Send to", required=False, choices=_targets(deployment)
        )
        texts = start.texts or request_inputs.default_texts(start.inputs)
        for index, (item, text) in enumerate(zip(start.inputs, texts, strict=True)):
            self.fields[request_inputs.values_field(index)] = _values_field(item, text)
            if item.takes_shape:
                self.fields[request_inputs.shape_field(index)] = _shape_field(item, text)

    @property
    def rows(self) -> list[InputRow]:
        return [
            InputRow(
                item,
                self[request_inputs.values_field(index)],
                self[request_inputs.shape_field(index)] if item.takes_shape else None,
                request_inputs.describe_picture(item),
            )
            for index, item in enumerate(self.inputs)
        ]

    @property
    def has_input_errors(self) -> bool:
        return any(row.values.errors or (row.shape and row.shape.errors) for row in self.rows)

    def target(self) -> TrialTarget:
        return TrialTarget(self.cleaned_data["target"] or TrialTarget.GATEWAY)

    def read_body(self) -> str:
        """Return the request. Raises Invalid for inputs that make none."""
        if self.sends_inputs:
            self.sent = serving_try_it.build_body(self.inputs, self._texts())
        else:
            self.sent = self.cleaned_data["body"]
        return self.sent

    def show_as_sent(self) -> bool:
        """Make the fields and the JSON show the request that was sent. False where the fields cannot."""
        if self.sends_inputs:
            self._entered["body"] = _limit(self.sent)
            return True
        texts = serving_try_it.read_texts(self.inputs, self.sent)
        for index, text in enumerate(texts or ()):
            self._entered[request_inputs.values_field(index)] = text.values
            self._entered[request_inputs.shape_field(index)] = text.shape
        return texts is not None

    def _texts(self) -> list[InputText]:
        return [
            InputText(
                self.cleaned_data[request_inputs.values_field(index)],
                self.cleaned_data.get(request_inputs.shape_field(index), ""),
            )
            for index, _ in enumerate(self.inputs)
        ]


@require_http_methods(["GET", "POST"])
@people_only
def try_it(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    examples = _list_examples(deployment)
    chosen = request.GET.get("example", "")
    example = next((row for row in examples if row.name == chosen), None)
    start = _start(deployment, example)
    form = TryForm(deployment, start, request.POST if request.method == "POST" else None)
    trial = form.run(lambda: _send(user, deployment, form)) if form.is_bound else None
    shows_sent = form.show_as_sent() if trial else False
    context = {
        "form": form,
        "trial": trial,
        "answer": trial and serving_try_it.describe_answer(deployment, trial, form.target()),
        "has_fields": start.texts is not None,
        "swaps_json": trial is not None and form.sends_inputs,
        "swaps_inputs": form.has_input_errors or (shows_sent and not form.sends_inputs),
        "examples": examples,
        "example": example,
        "missing_example": chosen if example is None else "",
        "has_targets": deployment.candidate_revision is not None,
        "needs_key": serving_try_it.needs_key(deployment),
        **lines.saving_context(user, deployment, trial, form.sent),
        **_call_context(deployment, serving_try_it.read_body(form.sent) or start.body),
    }
    parts = {"answer": "pages/_try_answer.html"}
    status = form.status if form.is_bound else 200
    return frame.show(request, user, deployment, "try", context, parts=parts, status=status)


def _send(user: User, deployment: Deployment, form: TryForm) -> TrialResponse:
    body = form.read_body()
    return serving_try_it.send(
        actor=user, deployment_id=deployment.pk, body=body, target=form.target()
    )


def _values_field(item: RequestInput, text: InputText) -> forms.CharField:
    attributes: dict[str, Any] = {"spellcheck": "false", "class": "mono", "rows": 1}
    widget: forms.Widget
    if item.kind == InputKind.NUMBER:
        limits = {"min": 0} if item.is_unsigned else {}
        widget = forms.NumberInput(attrs={"step": 1 if item.is_integer else "any", **limits})
    elif item.kind == InputKind.NUMBERS:
        widget = forms.Textarea(attrs=attributes)
    else:
        widget = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(
        label=item.name,
        required=False,
        strip=False,
        initial=text.values,
        help_text=item.hint,
        widget=widget,
    )


def _shape_field(item: RequestInput, text: InputText) -> forms.CharField:
    example = ", ".join(str(size) for size in item.default_shape)
    return forms.CharField(
        label=f"Shape of {item.name}",
        required=False,
        initial=text.shape,
        help_text="Leave empty to derive it from the number of values.",
        widget=forms.TextInput(attrs={"class": "mono", "placeholder": example}),
    )


def _targets(deployment: Deployment) -> list[tuple[str, str]]:
    choices = [(TrialTarget.GATEWAY.value, "the gateway, like any client")]
    if serving_try_it.needs_key(deployment):
        choices = []
    revisions = {
        TrialTarget.STABLE: deployment.stable_revision,
        TrialTarget.CANDIDATE: deployment.candidate_revision,
    }
    for target, revision in revisions.items():
        if revision is not None:
            label = f"{target.value} · {revision.version.label} · r{revision.number}, bypassing the gateway"
            choices.append((target.value, label))
    return choices


def _list_examples(deployment: Deployment) -> Sequence[GoldenRequest]:
    """List the golden requests of the served model. Empty for one that takes other requests."""
    revision = deployment.stable_revision
    if revision is None or "inputs" not in serving_try_it.call_of(revision).body:
        return []
    return list(quality.golden_requests_of(revision.version.model))


def _start(deployment: Deployment, example: GoldenRequest | None) -> StartingRequest:
    revision = deployment.stable_revision
    if revision is None:
        return StartingRequest((), None, None)
    inputs = serving_try_it.list_inputs(revision)
    if example is not None:
        body: dict[str, Any] = example.request
        read = request_inputs.read_texts(inputs, body) if inputs else None
        # The database keeps no order of names.
        return StartingRequest(
            inputs, request_inputs.build_body(inputs, read) if read else body, read
        )
    if not inputs:
        return StartingRequest((), serving_try_it.call_of(revision).body, None)
    texts = request_inputs.default_texts(inputs)
    return StartingRequest(inputs, request_inputs.build_body(inputs, texts), texts)


def _format_body(body: dict[str, Any] | None) -> str:
    return "" if body is None else _limit(json.dumps(body, ensure_ascii=False))


def _limit(text: str) -> str:
    """Return the text. Empty where it is too large for a form."""
    return text if len(text) <= inference_call.MAX_PREFILLED_LENGTH else ""


def _call_context(deployment: Deployment, body: dict[str, Any] | None) -> dict[str, Any]:
    revision = deployment.stable_revision
    if revision is None:
        return {"call": None, "snippets": [], "address": "", "triton_host": ""}
    address = deployments.url_of(deployment)
    split = urlsplit(address)
    access = deployments.access_of(deployment)
    to = RequestAddress(
        url=serving_try_it.url_of(deployment, revision),
        deployment=f"{deployment.team.slug}/{deployment.name}",
        key_header=access.key_header,
        curl_arguments=access.curl_arguments,
    )
    return {
        "call": serving_try_it.call_of(revision),
        "snippets": request_snippets.render_snippets(to, body or {}),
        "is_long_request": not request_snippets.is_inline(body or {}),
        "request_file": request_snippets.FILE,
        "address": address,
        "triton_host": f"{split.netloc}{split.path}",
    }
