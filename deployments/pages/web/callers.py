"""The tab Callers of a deployment: who may call it, and their keys. A new key is on the answer only."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from deployments.callers.selectors import keys as key_views
from deployments.callers.services import keys
from deployments.callers.services.keys import NewKey
from deployments.callers.web.forms import KeyForm, NewKeyForm
from deployments.models import Deployment
from deployments.pages.web import frame
from deployments.serving.selectors import deployments
from deployments.serving.services import try_it
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui.access import people_only


@require_http_methods(["GET", "POST"])
@people_only
def callers(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    is_of_key = "key_id" in request.POST
    new_form = NewKeyForm(None if is_of_key else request.POST or None)
    key_form = KeyForm(request.POST if is_of_key else None)
    made: NewKey | None = None
    if request.method == "POST" and is_of_key:
        if key_form.is_valid() and key_form.cleaned_data["action"] == "revoke":
            row = key_form.run(
                lambda: keys.revoke(
                    actor=user,
                    deployment_id=deployment.pk,
                    key_id=key_form.cleaned_data["key_id"],
                )
            )
            if row is not None:
                messages.success(request, f"Key {row.prefix}… of {row.consumer.name} revoked.")
                return redirect("callers", team, name)
        else:
            made = key_form.run(
                lambda: keys.rotate(
                    actor=user,
                    deployment_id=deployment.pk,
                    key_id=key_form.cleaned_data["key_id"],
                    overlap_hours=key_form.overlap(),
                )
            )
    elif request.method == "POST":
        made = new_form.run(
            lambda: keys.create(actor=user, deployment_id=deployment.pk, draft=new_form.draft())
        )
    posted = key_form if is_of_key else new_form
    response = _show(request, user, deployment, new_form, posted, made)
    if made is not None:
        response["Cache-Control"] = "no-store"
    return response


def _show(
    request: HttpRequest,
    user: User,
    deployment: Deployment,
    new_form: NewKeyForm,
    posted: KeyForm | NewKeyForm,
    made: NewKey | None,
) -> HttpResponse:
    context = {
        "keys": key_views.list_of(deployment),
        "needs_keys": try_it.needs_key(deployment),
        "may_manage": not deployment.is_retired
        and policy.is_allowed(user, Action.MANAGE_CALLERS, deployment),
        "form": NewKeyForm() if made is not None else new_form,
        "key_form": KeyForm(),
        "errors": [] if posted is new_form else [e for es in posted.errors.values() for e in es],
        "made": made,
    }
    status = posted.status if posted.is_bound and made is None else 200
    return frame.show(request, user, deployment, "callers", context, status=status)
