"""Try it: send one request from the page through the gateway.

A request is entered in a field for each input, or as JSON. After each of them the other shows the same request, and so
does the code beside it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.forms import BoundField
from django.http import HttpRequest, HttpResponse, QueryDict
from django.views.decorators.http import require_http_methods, require_POST

from deployments.callers.services import trial_keys
from deployments.models import Deployment, GoldenRequest
from deployments.pages.web import frame
from deployments.quality.selectors import quality
from deployments.quality.web import lines
from deployments.serving.domain import (
    inference_call,
    request_inputs,
    request_snippets,
)
from deployments.serving.domain.file_inputs import PictureLayout
from deployments.serving.domain.request_inputs import InputKind, InputText, RequestInput
from deployments.serving.domain.request_snippets import RequestAddress
from deployments.serving.selectors import deployments
from deployments.serving.services import try_it as serving_try_it
from deployments.serving.services.try_it import TrialRequest, TrialResponse, TrialTarget
from deployments.serving.web.forms import BodyForm
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.accounts.roles import list_leads
from portal.core.definitions import Rejected
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
    """An input with its bound fields. `shape` is None where the number of values says it, `content` where no file
    becomes this input.
    """

    input: RequestInput
    values: BoundField
    shape: BoundField | None
    content: BoundField | None

    @property
    def is_picture(self) -> bool:
        return isinstance(self.input.file, PictureLayout)

    @property
    def file_kind(self) -> str:
        return "Picture" if self.is_picture else "Recording"

    @property
    def accepted_files(self) -> str:
        return "image/*" if self.is_picture else "audio/*"

    @property
    def layout(self) -> str:
        """The layout of the file's values, for static/js/try_it.js."""
        return "" if self.input.file is None else json.dumps(asdict(self.input.file))


class TryForm(BodyForm):
    """The form of a trial request. `target` is shown only while there are two revisions."""

    use_required_attribute = False

    def __init__(
        self,
        deployment: Deployment,
        start: StartingRequest,
        posted: HttpRequest | None = None,
    ) -> None:
        data = posted.POST if posted else None
        files = posted.FILES if posted else None
        initial = {"body": start.text, "target": TrialTarget.GATEWAY}
        self._entered = data.copy() if data else QueryDict(mutable=True)
        super().__init__(self._entered if data else None, files, initial=initial)
        self.inputs = start.inputs
        self.sends_inputs = bool(start.inputs and data and data.get("source", "") == _FROM_INPUTS)
        # The request as it was sent.
        self.sent = TrialRequest("")
        self.fields["body"].required = not self.sends_inputs
        # Of the card with a new key, which the page still shows.
        self.fields["key"] = forms.CharField(required=False, widget=forms.HiddenInput)
        self.fields["target"] = forms.ChoiceField(
            label="Send to", required=False, choices=_targets(deployment)
        )
        texts = start.texts or request_inputs.default_texts(start.inputs)
        for index, (item, text) in enumerate(zip(start.inputs, texts, strict=True)):
            self.fields[request_inputs.values_field(index)] = _values_field(item, text)
            if item.takes_shape:
                self.fields[request_inputs.shape_field(index)] = _shape_field(item, text)
            if item.file is not None:
                self.fields[request_inputs.content_field(index)] = forms.FileField(
                    required=False, widget=forms.FileInput(attrs={"hidden": True})
                )

    @property
    def rows(self) -> list[InputRow]:
        return [
            InputRow(
                item,
                self[request_inputs.values_field(index)],
                self[request_inputs.shape_field(index)] if item.takes_shape else None,
                self[request_inputs.content_field(index)] if item.file else None,
            )
            for index, item in enumerate(self.inputs)
        ]

    @property
    def takes_files(self) -> bool:
        return any(item.file is not None for item in self.inputs)

    @property
    def has_input_errors(self) -> bool:
        return any(row.values.errors or (row.shape and row.shape.errors) for row in self.rows)

    def target(self) -> TrialTarget:
        return TrialTarget(self.cleaned_data["target"] or TrialTarget.GATEWAY)

    @property
    def key(self) -> str:
        """The key that the page was given with one click. Empty without one."""
        return str(self.cleaned_data.get("key", "")) if self.is_bound and self.is_valid() else ""

    def read_request(self) -> TrialRequest:
        """Return the request. Raises Invalid for inputs that make none."""
        if self.sends_inputs:
            self.sent = serving_try_it.build_request(self.inputs, self._texts())
        else:
            self.sent = TrialRequest(self.cleaned_data["body"])
        return self.sent

    def show_as_sent(self) -> bool:
        """Make the fields and the JSON show the request that was sent. False where the fields cannot."""
        if self.sends_inputs:
            # Of what is sent as binary data the JSON is no request.
            self._entered["body"] = "" if self.sent.binary else _limit(self.sent.body)
            return True
        texts = serving_try_it.read_texts(self.inputs, self.sent.body)
        for index, text in enumerate(texts or ()):
            self._entered[request_inputs.values_field(index)] = text.values
            self._entered[request_inputs.shape_field(index)] = text.shape
        return texts is not None

    def _texts(self) -> list[InputText]:
        uploads = [self._upload(index) for index, _ in enumerate(self.inputs)]
        serving_try_it.require_room(sum(upload.size or 0 for upload in uploads if upload))
        return [
            InputText(
                self.cleaned_data[request_inputs.values_field(index)],
                self.cleaned_data.get(request_inputs.shape_field(index), ""),
                upload.read() if upload else b"",
            )
            for index, upload in enumerate(uploads)
        ]

    def _upload(self, index: int) -> UploadedFile[Any] | None:
        """Return the values that a file became. None without one."""
        upload: UploadedFile[Any] | None = self.cleaned_data.get(
            request_inputs.content_field(index)
        )
        return upload


@require_http_methods(["GET", "POST"])
@people_only
def try_it(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    examples = _list_examples(deployment)
    chosen = request.GET.get("example", "")
    example = next((row for row in examples if row.name == chosen), None)
    start = _start(deployment, example)
    form = TryForm(deployment, start, request if request.method == "POST" else None)
    trial = form.run(lambda: _send(user, deployment, form)) if form.is_bound else None
    shows_sent = form.show_as_sent() if trial else False
    has_key = bool(form.key)
    context = {
        "form": form,
        "trial": trial,
        "answer": trial
        and serving_try_it.describe_answer(deployment, trial, form.target(), has_key=has_key),
        "has_fields": start.texts is not None,
        "swaps_json": trial is not None and form.sends_inputs,
        "swaps_inputs": form.has_input_errors or (shows_sent and not form.sends_inputs),
        "examples": examples,
        "example": example,
        "missing_example": chosen if example is None else "",
        "has_targets": deployment.candidate_revision is not None,
        **_saving_context(user, deployment, trial, form.sent),
        **_call_context(deployment, form.sent, start, form.key),
        **_key_context(user, deployment),
    }
    parts = {"answer": "pages/_try_answer.html"}
    status = form.status if form.is_bound else 200
    response = frame.show(request, user, deployment, "try", context, parts=parts, status=status)
    if has_key:
        response["Cache-Control"] = "no-store"
    return response


@require_POST
@people_only
def create_key(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    """Create a key for the person who tries the deployment, and show it once, in the code of the request."""
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    made = trial_keys.create(actor=user, deployment_id=deployment.pk)
    start = _start(deployment, None)
    sent = TrialRequest(request.POST.get("body", ""))
    context = {
        "form": TryForm(deployment, start),
        "has_fields": start.texts is not None,
        "examples": _list_examples(deployment),
        "has_targets": deployment.candidate_revision is not None,
        "saving": None,
        "made": made,
        **_call_context(deployment, sent, start, made.plain),
        **_key_context(user, deployment),
    }
    parts = {"request-key": "pages/_try_key_made.html"}
    response = frame.show(request, user, deployment, "try", context, parts=parts)
    response["Cache-Control"] = "no-store"
    return response


def _key_context(user: User, deployment: Deployment) -> dict[str, Any]:
    """Say whether the person may have a key for the address with one click, else who gives them one."""
    needs_key = serving_try_it.needs_key(deployment)
    takes_key = needs_key and not deployment.is_retired and trial_keys.takes_key(deployment)
    may_create = takes_key and policy.is_allowed(user, Action.MANAGE_CALLERS, deployment)
    return {
        "needs_key": needs_key,
        "takes_key": takes_key,
        "may_create_key": may_create,
        "key_givers": list_leads(deployment.team) if takes_key and not may_create else (),
    }


def _send(user: User, deployment: Deployment, form: TryForm) -> TrialResponse:
    request = form.read_request()
    return serving_try_it.send(
        actor=user,
        deployment_id=deployment.pk,
        body=request.body,
        binary=request.binary,
        key=form.key,
        target=form.target(),
    )


def _saving_context(
    user: User, deployment: Deployment, trial: TrialResponse | None, sent: TrialRequest
) -> dict[str, Any]:
    """Return the context of the form that saves an answer. Golden requests are JSON."""
    return (
        {"saving": None}
        if sent.binary
        else lines.saving_context(user, deployment, trial, sent.body)
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
    try:
        return StartingRequest(inputs, request_inputs.build_body(inputs, texts), texts)
    except Rejected:
        # An input so large that only a file becomes it.
        return StartingRequest(inputs, serving_try_it.call_of(revision).body, texts)


def _format_body(body: dict[str, Any] | None) -> str:
    return "" if body is None else _limit(json.dumps(body, ensure_ascii=False))


def _limit(text: str) -> str:
    """Return the text. Empty where it is too large for a form."""
    return text if len(text) <= inference_call.MAX_PREFILLED_LENGTH else ""


def _call_context(
    deployment: Deployment, sent: TrialRequest, start: StartingRequest, key: str
) -> dict[str, Any]:
    body = serving_try_it.read_body(sent.body) or start.body or {}
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
        key=key,
    )
    return {
        "call": serving_try_it.call_of(revision),
        "snippets": (
            request_snippets.render_binary_snippets(to, sent.headers)
            if sent.binary
            else request_snippets.render_snippets(to, body)
        ),
        "is_long_request": not sent.binary and not request_snippets.is_inline(body),
        "request_file": request_snippets.FILE,
        "binary_file": request_snippets.BINARY_FILE,
        "binary_head": sent.body if sent.binary else "",
        "address": address,
        "triton_host": f"{split.netloc}{split.path}",
    }
