"""Teams and their members."""

from __future__ import annotations

import re
from decimal import Decimal

from django.db import transaction

from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import SLUG, Membership, Role, Team, User
from portal.accounts.policy import Action, Actor
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

CREATED = register("team.created", "created team")
LIMITS_SET = register("team.limits_set", "changed the quota and budget of")
MEMBER_SET = register("team.member_set", "changed a member of")
MEMBER_REMOVED = register("team.member_removed", "removed a member of")
# Namespaces of Kubernetes and platform services, which a team must not control.
_RESERVED = re.compile(
    r"default|(kube|slipway|istio|knative)-.*|kserve|keda|cert-manager|gpu-operator|monitoring"
)


# First segments of addresses of pages: a team's pages begin with its slug.
RESERVED_ADDRESSES = frozenset(
    [
        *("account", "admin", "advice", "alerts", "api", "approvals", "audit", "batch", "channels"),
        *("charts", "confirm", "costs", "decide", "decisions", "deployments", "docs", "fleet"),
        *("healthz", "import", "imports", "invitation", "jump", "metrics", "models"),
        *("password-link", "pipelines", "quarantined-in-use", "readyz", "register", "scim"),
        *("session", "sign-in", "sign-out", "static", "theme", "ui", "upload", "what-if"),
    ]
)
MAX_GPUS = 100_000


def create(
    *,
    actor: Actor,
    slug: str,
    name: str,
    quota_gpus: int,
    monthly_budget_amount: Decimal,
    is_budget_binding: bool = False,
) -> Team:
    """Raises Invalid for a slug that is no valid namespace or is reserved, Conflict for a taken one."""
    policy.require_platform_admin(actor, Action.MANAGE_TEAM)
    if not re.fullmatch(SLUG, slug):
        raise Invalid(
            "The short name is also the Kubernetes namespace. Use at most 32 "
            "lowercase letters, digits and '-', starting with a letter.",
            fields={"slug": "lowercase letters, digits and '-'"},
        )
    if _RESERVED.fullmatch(slug) or slug in RESERVED_ADDRESSES:
        raise Invalid(
            f"{slug} is reserved for Kubernetes, the platform or a page of the portal. Choose another short name.",
            fields={"slug": "choose another name"},
        )
    _check_quota(quota_gpus)
    if Team.objects.filter(slug=slug).exists():
        raise Conflict(f"Team {slug} already exists.", code="name_taken")
    with transaction.atomic():
        team = Team.objects.create(
            slug=slug,
            name=name,
            quota_gpus=quota_gpus,
            monthly_budget_amount=monthly_budget_amount,
            is_budget_binding=is_budget_binding,
            created_at=clock.now(),
        )
        trail.record(actor=actor, action=CREATED, obj=team, label=slug, team_slug=slug)
    return team


def set_limits(
    *,
    actor: Actor,
    team: Team,
    quota_gpus: int,
    monthly_budget_amount: Decimal,
    is_budget_binding: bool = False,
) -> None:
    policy.require_platform_admin(actor, Action.MANAGE_TEAM)
    _check_quota(quota_gpus)
    before = {
        "quota_gpus": team.quota_gpus,
        "monthly_budget_amount": str(team.monthly_budget_amount),
        "is_budget_binding": team.is_budget_binding,
    }
    after = {
        "quota_gpus": quota_gpus,
        "monthly_budget_amount": str(monthly_budget_amount),
        "is_budget_binding": is_budget_binding,
    }
    with transaction.atomic():
        Team.objects.filter(pk=team.pk).update(
            quota_gpus=quota_gpus,
            monthly_budget_amount=monthly_budget_amount,
            is_budget_binding=is_budget_binding,
        )
        trail.record(
            actor=actor,
            action=LIMITS_SET,
            obj=team,
            team_slug=team.slug,
            before=before,
            after=after,
        )


def _check_quota(quota_gpus: int) -> None:
    if not 0 <= quota_gpus <= MAX_GPUS:
        raise Invalid(
            f"The quota must be between 0 and {MAX_GPUS:,} GPUs and Neuron devices.",
            fields={"quota_gpus": f"0 to {MAX_GPUS:,}"},
        )


def set_member(*, actor: Actor, team: Team, username: str, role: str) -> Membership:
    """Add the user or change their role. Raises Invalid for an unknown user or role."""
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    step_up.require(actor)
    user = User.objects.filter(username=username).first()
    if user is None:
        raise Invalid(
            f"User {username} does not exist. A person must sign in once before you can add them.",
            fields={"username": "unknown"},
        )
    if user.is_service_account:
        raise Invalid(
            f"{username} is a service account. It stays a member of its own team and never leads.",
            fields={"username": "choose a person"},
        )
    if role not in Role.values:
        raise Invalid(
            f"Unknown role. Use one of: {', '.join(Role.values)}.", fields={"role": "unknown"}
        )
    with transaction.atomic():
        old = Membership.objects.filter(user=user, team=team).first()
        if old and old.provider:
            raise Conflict(
                f"The sign-in provider {old.provider} gave {username} the role {old.role}, and would set it "
                "again at the next sign-in. Change the person's groups there.",
                code="role_by_provider",
            )
        membership, _ = Membership.objects.update_or_create(
            user=user, team=team, defaults={"role": role}
        )
        trail.record(
            actor=actor,
            action=MEMBER_SET,
            obj=team,
            team_slug=team.slug,
            before={username: old.role if old else None},
            after={username: role},
        )
    return membership


def remove_member(*, actor: Actor, team: Team, username: str) -> None:
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    step_up.require(actor)
    with transaction.atomic():
        membership = Membership.objects.filter(
            user__username=username, user__service_team=None, team=team
        ).first()
        if membership is None:
            raise NotFound(f"{username} is not a member of {team.slug}.")
        membership.delete()
        trail.record(
            actor=actor,
            action=MEMBER_REMOVED,
            obj=team,
            team_slug=team.slug,
            before={username: membership.role},
        )


def get_visible(*, actor: Actor, slug: str) -> Team:
    team = None if "\0" in slug else policy.visible_teams(actor).filter(slug=slug).first()
    if team is None:
        raise NotFound(f"Team {slug} does not exist, or you are not in it.")
    return team


def list_members(*, actor: Actor, team: Team) -> list[Membership]:
    policy.require(actor, Action.VIEW, team)
    people = team.memberships.filter(user__service_team=None)
    return list(people.select_related("user").order_by("user__username"))
