"""Try it: send one request from the page through the gateway."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from deployments.models import Deployment
from deployments.pages.web import frame
from deployments.quality.web import lines
from deployments.serving.domain import inference_call
from deployments.serving.selectors import deployments
from deployments.serving.services import try_it as serving_try_it
from deployments.serving.services.try_it import TrialTarget
from deployments.serving.web.forms import BodyForm
from portal.accounts.models import User
from portal.ui.access import people_only


class TryForm(BodyForm):
    """The form of a trial request. `target` is shown only while there are two revisions."""

    def __init__(self, deployment: Deployment, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["target"] = forms.ChoiceField(
            label="Send to", required=False, choices=_targets(deployment)
        )

    def target(self) -> TrialTarget:
        return TrialTarget(self.cleaned_data["target"] or TrialTarget.GATEWAY)


@require_http_methods(["GET", "POST"])
@people_only
def try_it(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    initial = {"body": _example(deployment), "target": TrialTarget.GATEWAY}
    form = TryForm(deployment, request.POST or None, initial=initial)
    trial = None
    if request.method == "POST":
        trial = form.run(
            lambda: serving_try_it.send(
                actor=user,
                deployment_id=deployment.pk,
                body=form.cleaned_data["body"],
                target=form.target(),
            )
        )
    context = {
        "form": form,
        "trial": trial,
        "has_targets": deployment.candidate_revision is not None,
        "needs_key": serving_try_it.needs_key(deployment),
        **lines.saving_context(user, deployment, trial, request.POST.get("body", "")),
        **_call_context(deployment),
    }
    parts = {"answer": "serving/_answer.html"}
    status = form.status if form.is_bound else 200
    return frame.show(request, user, deployment, "try", context, parts=parts, status=status)


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


def _example(deployment: Deployment) -> str:
    revision = deployment.stable_revision
    if revision is None:
        return ""
    return inference_call.prefill_body(serving_try_it.call_of(revision))


def _call_context(deployment: Deployment) -> dict[str, Any]:
    revision = deployment.stable_revision
    if revision is None:
        return {"call": None, "curl": "", "address": "", "triton_host": ""}
    address = deployments.url_of(deployment)
    split = urlsplit(address)
    key = deployments.access_of(deployment).curl_arguments
    return {
        "call": serving_try_it.call_of(revision),
        "curl": f"curl --json @request.json {key}\\\n  {serving_try_it.url_of(deployment, revision)}",
        "address": address,
        "triton_host": f"{split.netloc}{split.path}",
    }
