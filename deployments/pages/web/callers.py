"""The tab Callers of a deployment: who may call it, and their keys. A new key is on the answer only."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from deployments.access.domain import catalogue
from deployments.callers.selectors import gateway_state, token_issuers
from deployments.callers.selectors import keys as key_views
from deployments.callers.selectors import usage as caller_usage
from deployments.callers.services import keys, limits
from deployments.callers.services.issuing import NewKey
from deployments.callers.web.forms import KeyForm, NewKeyForm
from deployments.delivery.services import live_objects
from deployments.manifests.domain.access.caller_keys import GatewayRefusal
from deployments.models import CallerKey, Deployment
from deployments.pages.web import frame
from deployments.serving.selectors import deployments
from fleet.kube.domain.errors import ClusterError
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.ui.access import people_only


@require_http_methods(["GET", "POST"])
@people_only
def callers(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    deployment = deployments.get_visible(actor=user, team_slug=team, name=name)
    is_of_key = "key_id" in request.POST
    new_form = _new_form(deployment, None if is_of_key else request.POST or None)
    key_form = KeyForm(request.POST if is_of_key else None)
    made: NewKey | None = None
    if request.method == "POST" and is_of_key:
        changed = key_form.run(lambda: _change_key(user, deployment, key_form))
        if isinstance(changed, CallerKey):
            done = "revoked" if changed.is_revoked else _limit_of(changed)
            what = "Access of" if changed.claim_value else "Key"
            messages.success(request, f"{what} {changed.hint} of {changed.consumer.name}: {done}.")
            return redirect("callers", team, name)
        made = changed
    elif request.method == "POST":
        made = new_form.run(
            lambda: keys.create(actor=user, deployment_id=deployment.pk, draft=new_form.draft())
        )
    posted = key_form if is_of_key else new_form
    response = _show(request, user, deployment, new_form, posted, made)
    if made is not None:
        response["Cache-Control"] = "no-store"
    return response


def _new_form(deployment: Deployment, data: QueryDict | None = None) -> NewKeyForm:
    return NewKeyForm(
        data,
        issuers=token_issuers.list_for_cluster(deployment.cluster_id),
        issuer=_issuer_of(deployment),
    )


def _issuer_of(deployment: Deployment) -> str:
    """Return the issuer whose tokens the deployment takes. Empty where it takes keys, or is open."""
    spec = deployments.spec_of_stable(deployment)
    return "" if spec is None else spec.network.token_issuer


def _change_key(user: User, deployment: Deployment, form: KeyForm) -> CallerKey | NewKey:
    """Change a key as the form says. Return a new key where it was rotated. Raises DomainError."""
    data = form.cleaned_data
    key: dict[str, Any] = {
        "actor": user,
        "deployment_id": deployment.pk,
        "key_id": data["key_id"],
    }
    if data["action"] == "revoke":
        return keys.revoke(**key)
    if data["action"] == "limit":
        return limits.set_limits(**key, limits=form.stated_limits())
    return keys.rotate(**key, overlap_hours=form.overlap(), days=data["days"])


def _gateway_report(deployment: Deployment) -> tuple[list[GatewayRefusal], str]:
    """Return the policies that the gateway does not follow, or why they are not known."""
    if deployment.is_retired:
        return [], ""
    try:
        return live_objects.refused_policies(deployment), ""
    except ClusterError as error:
        return [], error.message


def _limit_of(row: CallerKey) -> str:
    lines = key_views.view_of(row, clock.now()).limit_lines
    return f"{', '.join(lines)} at most" if lines else "no limit"


def _keys_url(user: User, deployment: Deployment) -> str:
    """Return the form that has callers need a key, with the version that serves. Empty for who may not send it."""
    stable = deployment.stable_revision
    may_request = policy.is_allowed(user, Action.REQUEST_CHANGE, deployment)
    if stable is None or deployment.is_retired or deployment.is_stopped or not may_request:
        return ""
    form = reverse("request-canary", args=[deployment.team.slug, deployment.name])
    return f"{form}?{urlencode({'version': stable.version_id, 'access': catalogue.DEFAULT.name})}"


def _show(
    request: HttpRequest,
    user: User,
    deployment: Deployment,
    new_form: NewKeyForm,
    posted: KeyForm | NewKeyForm,
    made: NewKey | None,
) -> HttpResponse:
    refusals, unanswered = _gateway_report(deployment)
    access, issuer = deployments.access_of(deployment), _issuer_of(deployment)
    context = {
        "refusals": refusals,
        "unanswered": unanswered,
        "gateway": gateway_state.read(deployment),
        "keys": key_views.list_of(deployment),
        "pipelines": key_views.pipelines_of(deployment),
        "access": access,
        # A kind may have a template with what is special about it.
        "access_notes": [f"pages/access/_{access.name}.html", "pages/access/_other.html"],
        "needed": access.describe_need(issuer),
        "keys_url": _keys_url(user, deployment),
        "team_url": deployments.team_url_of(deployment),
        "may_manage": not deployment.is_retired
        and policy.is_allowed(user, Action.MANAGE_CALLERS, deployment),
        "form": _new_form(deployment) if made is not None else new_form,
        "issuer": issuer,
        "key_form": KeyForm(),
        "most_days": keys.max_days(),
        "enforces_limits": limits.enforces_limits(deployment),
        "why_no_tokens": limits.why_no_tokens(deployment),
        "errors": [] if posted is new_form else [e for es in posted.errors.values() for e in es],
        "made": made,
        "usage": caller_usage.this_month(deployment),
    }
    status = posted.status if posted.is_bound and made is None else 200
    return frame.show(request, user, deployment, "callers", context, status=status)
