"""Create and describe models."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.db.models import Max

from deployments.models import Model, ModelVersion
from deployments.registry.selectors import versions
from deployments.spec.domain import model_names
from portal.accounts import policy, teams
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid

CREATED = register("model.created", "created model")
DESCRIBED = register("model.described", "edited model")
MAX_DESCRIPTION_LENGTH = 20_000
MAX_TASK_LENGTH = 60


def create(
    *, actor: User, team_slug: str, name: str, description: str = "", task: str = ""
) -> Model:
    """Create a model. Raises Invalid for a name that Kubernetes or Triton rejects, Conflict for an existing one."""
    team = teams.get_visible(actor=actor, slug=team_slug)
    policy.require(actor, Action.UPLOAD, team)
    _check_texts(description, task)
    if problem := model_names.model_name_problem(name):
        raise Invalid(problem, fields={"name": problem})
    try:
        with transaction.atomic():
            return _insert(actor=actor, team=team, name=name, description=description, task=task)
    except IntegrityError as error:
        raise Conflict(
            f"{team.slug} already has a model {name}. Upload a new version of it instead.",
            code="name_taken",
        ) from error


def get_or_create(*, actor: User, team: Team, name: str, description: str = "") -> Model:
    """Return the model that an upload names, or create it. Call inside the upload's transaction, after checking
    permission and name.
    """
    model = Model.objects.select_related("team").filter(team=team, name=name).first()
    return model or _insert(actor=actor, team=team, name=name, description=description, task="")


def next_number(model: Model) -> int:
    """Return the number of the next version. A concurrent insert may take it first."""
    last = ModelVersion.objects.filter(model=model).aggregate(number=Max("number"))["number"]
    return (last or 0) + 1


def describe(*, actor: User, team_slug: str, name: str, description: str, task: str) -> Model:
    model = versions.get_model(actor=actor, team_slug=team_slug, name=name)
    policy.require(actor, Action.UPLOAD, model)
    _check_texts(description, task)
    before = {"description": model.description, "task": model.task}
    after = {"description": description, "task": task}
    if before == after:
        return model
    at = clock.now()
    with transaction.atomic():
        Model.objects.filter(pk=model.pk).update(**after, changed_at=at)
        trail.record(
            actor=actor,
            action=DESCRIBED,
            obj=model,
            team_slug=model.team.slug,
            before=before,
            after=after,
        )
    model.description, model.task, model.changed_at = description, task, at
    return model


def _insert(*, actor: User, team: Team, name: str, description: str, task: str) -> Model:
    at = clock.now()
    model = Model.objects.create(
        team=team,
        name=name,
        description=description,
        task=task,
        created_by=actor,
        created_at=at,
        changed_at=at,
    )
    trail.record(actor=actor, action=CREATED, obj=model, team_slug=team.slug)
    return model


def _check_texts(description: str, task: str) -> None:
    if len(description) > MAX_DESCRIPTION_LENGTH:
        raise Invalid(
            f"The description can have at most {MAX_DESCRIPTION_LENGTH} characters.",
            fields={"description": f"at most {MAX_DESCRIPTION_LENGTH} characters"},
        )
    if len(task) > MAX_TASK_LENGTH:
        raise Invalid(
            f"The task can have at most {MAX_TASK_LENGTH} characters.",
            fields={"task": f"at most {MAX_TASK_LENGTH} characters"},
        )
