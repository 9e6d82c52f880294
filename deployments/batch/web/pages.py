"""The list of batch jobs, the form of a new one, and the page of one."""

from __future__ import annotations

import re
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_http_methods

from deployments.batch.domain import descriptions, places, queues, row_examples
from deployments.batch.domain.row_examples import RowExamples
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import FINAL, BatchState
from deployments.batch.selectors import jobs, waiting
from deployments.batch.services import decisions, downloads, estimates, requests
from deployments.batch.web.forms import BatchForm, JobDecisionForm
from deployments.models import BatchJob, ModelVersion
from deployments.registry.domain import loading, signatures
from deployments.registry.selectors import versions
from deployments.spec.domain.engines import TRITON
from deployments.spec.domain.placement import catalogue
from fleet.capacity.selectors import capacity
from fleet.clusters.selectors import clusters
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core.errors import Invalid, NotFound
from portal.ui import teams
from portal.ui.access import keeps_input, people_only
from portal.ui.htmx import respond, target_of

_PER_PAGE: Final = 25
_ESTIMATE: Final = "batch-estimate"
_STATE: Final = "batch-state"
_VERSIONS: Final = 100
_DONE: Final = {
    "approve": "Approved. It starts now.",
    "reject": "Rejected.",
    "cancel": "Canceled. Finished parts of the output stay.",
    "resume": "Resumed. It continues with what is not done.",
}


@require_GET
@people_only
def list_page(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    rows = jobs.list_visible_to(user, team_slug=team)
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "team": owner,
        "page": page,
        "has_open": any(job.state not in FINAL for job in page),
        "can_request": policy.is_allowed(user, Action.REQUEST_CHANGE, owner),
    }
    return respond(request, "batch/list.html", context, parts={"batch-jobs": "batch/_rows.html"})


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def new_job(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    policy.require(user, Action.REQUEST_CHANGE, owner)
    known = clusters.list_clusters()
    form = BatchForm(
        request.POST or None,
        clusters={row.name: capacity.list_single_gpus(cluster_id=row.id) for row in known},
        queues={
            row.name: row.capabilities.kueue.names_in(team)
            for row in known
            if row.capabilities.kueue is not None
        },
        area=places.team_area(settings.SLIPWAY_S3_BUCKET, team),
        versions=_versions(user, owner),
        most_versions=_VERSIONS,
    )
    is_request = request.method == "POST" and target_of(request) != _ESTIMATE
    if is_request:
        job = form.run(lambda: _request(user, owner, form))
        if job is not None:
            messages.success(request, "Request sent. Its input is being read.")
            return redirect("batch-job", team=team, name=job.name)
    context = {
        "team": owner,
        "form": form,
        "row_examples": _row_examples(user, owner, form.chosen_version),
        "is_queue": queues.is_queue(str(form["input"].value() or "")),
        **_estimate(user, owner, form),
    }
    status = form.status if is_request else 200
    parts = {_ESTIMATE: "batch/_new_part.html"}
    return respond(request, "batch/new.html", context, parts=parts, status=status)


@require_http_methods(["GET", "POST"])
@people_only
@keeps_input
def job_page(request: HttpRequest, user: User, team: str, name: str) -> HttpResponse:
    job = jobs.get_visible_by_name(actor=user, team_slug=team, name=name)
    form = JobDecisionForm(request.POST or None)
    if request.method == "POST":
        if form.run(lambda: _decide(user, job, form)) is not None:
            messages.success(request, _DONE[form.cleaned_data["decision"]])
            return redirect("batch-job", team=team, name=name)
        job = jobs.get_visible(actor=user, job_id=job.pk)
    is_final = job.state in FINAL
    is_poll = request.method == "GET" and target_of(request) == _STATE
    if is_poll and request.GET.get("state", job.state) != job.state:
        # Buttons and downloads beside the polled part differ by the state.
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return respond(
        request,
        "batch/job.html",
        _context_of(user, job, form, request.GET.get("page", "")) | {"is_final": is_final},
        parts={_STATE: "batch/_state.html"},
        is_final=is_final,
        status=form.status if form.is_bound else 200,
    )


def _request(user: User, team: Team, form: BatchForm) -> BatchJob:
    try:
        return requests.request(actor=user, team_slug=team.slug, draft=form.draft)
    except NotFound as error:
        # Of a version that was typed.
        raise Invalid(error.message, fields={"version": error.message}) from error


@require_GET
@people_only
def part(request: HttpRequest, user: User, team: str, name: str, number: int) -> HttpResponse:
    """Redirect to the object store, which has the bytes."""
    return redirect(downloads.part_url(actor=user, team_slug=team, name=name, number=number))


def _estimate(user: User, team: Team, form: BatchForm) -> dict[str, Any]:
    """Return the estimate of what is typed so far, or why there is none."""
    if form.workers is None:
        wrong = ", ".join(form.fields_in_error)
        problem = f"Fix {wrong} to see the cost." if wrong else "No cluster offers a single GPU."
        return {"why_no_estimate": problem}
    cluster, pods = form.workers
    try:
        shown = estimates.estimate(actor=user, team_slug=team.slug, cluster=cluster, pods=pods)
    except Invalid as refusal:
        return {"why_no_estimate": refusal.message}
    return {"estimate": shown}


def _versions(user: User, team: Team) -> list[ModelVersion]:
    """Return the versions that Triton serves, the newest of each model first. If there are too many to list, only
    the newest.
    """
    ready = versions.list_ready_versions(actor=user, team_slug=team.slug)
    named = ready.select_related(None).select_related("model")
    named = named.only("number", "source_uri", "format", "model__name")
    rows = list(named.order_by("-pk")[: _VERSIONS + 1])
    if len(rows) <= _VERSIONS:
        rows.sort(key=lambda row: (row.model.name, -row.number))
    return [row for row in rows if TRITON in loading.engines_for(row.source_uri, row.format)]


def _row_examples(user: User, team: Team, label: str) -> RowExamples | None:
    """Return a row for the version of this label. None without such a version, and if its inputs are not known."""
    model, _, number = label.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,9}", number, re.ASCII):
        return None
    try:
        version = versions.get_version_by_number(
            actor=user, team_slug=team.slug, name=model, number=int(number)
        )
    except NotFound:
        return None
    return row_examples.write_examples(signatures.from_json(version.signature))


def _decide(user: User, job: BatchJob, form: JobDecisionForm) -> BatchJob:
    comment = form.cleaned_data["comment"]
    match form.cleaned_data["decision"]:
        case "approve":
            return decisions.approve(actor=user, job_id=job.pk, comment=comment)
        case "reject":
            return decisions.reject(actor=user, job_id=job.pk, comment=comment)
        case "resume":
            return requests.resume(actor=user, job_id=job.pk)
        case _:
            return requests.cancel(actor=user, job_id=job.pk, reason=comment)


def _context_of(user: User, job: BatchJob, form: JobDecisionForm, page: str) -> dict[str, Any]:
    is_member = policy.is_allowed(user, Action.REQUEST_CHANGE, job.team)
    is_submitted = job.state == BatchState.SUBMITTED
    why_not = waiting.why_not_decide(user, job) if is_submitted else ""
    open_states = (BatchState.PLANNING, BatchState.SUBMITTED, BatchState.RUNNING)
    percent = 100 * job.done_rows / job.total_rows if job.total_rows else 0
    settings = BatchSettings.from_json(job.pods)
    pages = Paginator(downloads.parts_of(job), _PER_PAGE)
    return {
        "job": job,
        "page": pages.get_page(page),
        "form": form,
        "progress": jobs.progress_of(job),
        "queue": jobs.queue_of(job),
        "percent": percent,
        "is_submitted": is_submitted,
        "placement": catalogue.describe(settings.placement),
        "consequence": descriptions.consequence(settings, is_queue=job.is_queue),
        "needed": descriptions.NEEDED,
        "may_decide": is_submitted and not why_not,
        "why_not": why_not,
        "may_cancel": is_member and job.state in open_states,
        "may_resume": is_member
        and requests.may_resume(job)
        and (job.is_queue or job.total_rows is not None),
    }
