"""Switching off what guards a deployment takes the people that a change of it takes, in every environment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import pytest

from deployments.delivery.services import drift_decisions
from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.services import environment_rules
from deployments.health.services import switch
from deployments.models import Deployment, DeploymentHealth, SafeguardRequest
from deployments.states import DriftPolicy, Environment
from portal.accounts import service_accounts, tokens
from portal.accounts.models import AccountHolder, User
from portal.audit.models import AuditEvent
from portal.core import clock
from portal.core.errors import Conflict, DomainError, Forbidden
from tests.deployments.refusals import refused
from tests.deployments.world import World


def hold_drift(actor: User, deployment: Deployment, *, is_off: bool = True) -> None:
    to = DriftPolicy.HOLD if is_off else DriftPolicy.RE_APPLY
    drift_decisions.set_policy(actor=actor, deployment_id=deployment.pk, to=to)


def switch_watch(actor: User, deployment: Deployment, *, is_off: bool = True) -> None:
    switch.switch(actor=actor, deployment_id=deployment.pk, is_on=not is_off)


SWITCHES: Final[dict[str, Callable[..., None]]] = {"drift": hold_drift, "health": switch_watch}


def is_off(switch_name: str, deployment: Deployment) -> bool:
    if switch_name == "drift":
        return Deployment.objects.get(pk=deployment.pk).drift_policy == DriftPolicy.HOLD
    return not DeploymentHealth.objects.get(deployment=deployment).is_on


def protect(world: World, environment: str, **rules: object) -> None:
    environment_rules.change(
        actor=world.admin,
        environment=environment,
        team=None,
        rules=EnvironmentRules(**rules),  # type: ignore[arg-type]  # fields of the rules
    )


def serving_in(world: World, environment: str) -> Deployment:
    deployment = world.serving()
    Deployment.objects.filter(pk=deployment.pk).update(environment=environment)
    deployment.refresh_from_db()
    return deployment


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("environment", Environment)
@pytest.mark.parametrize("who", ["member", "lead", "admin"])
def test_nobody_takes_it_away_alone(world: World, name: str, environment: str, who: str) -> None:
    deployment, actor = serving_in(world, environment), getattr(world, who)

    SWITCHES[name](actor, deployment)
    with pytest.raises(Conflict, match="Waiting for others"):
        SWITCHES[name](actor, deployment)

    assert not is_off(name, deployment)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_service_account_requests_it_and_approves_nothing(world: World, name: str) -> None:
    deployment = world.serving()
    made = service_accounts.create(
        actor=world.lead2, team=world.team, name="ci", scopes=["request"]
    )
    account = tokens.user_of(made.plain)
    assert account is not None

    SWITCHES[name](world.member, deployment)
    with pytest.raises(Forbidden) as refusal:
        SWITCHES[name](account, deployment)

    assert refusal.value.code == "person_required"
    assert not is_off(name, deployment)


@pytest.mark.parametrize("name", SWITCHES)
def test_another_lead_approves_it(world: World, name: str) -> None:
    deployment = world.serving()
    SWITCHES[name](world.member, deployment)

    SWITCHES[name](world.lead, deployment)

    assert is_off(name, deployment)
    assert not SafeguardRequest.objects.exists()
    actions = AuditEvent.objects.filter(action__startswith="deployment.safeguard")
    assert list(actions.order_by("id").values_list("action", "actor_name")) == [
        ("deployment.safeguard_requested", "member"),
        ("deployment.safeguard_approved", "lead"),
    ]


@pytest.mark.parametrize("name", SWITCHES)
def test_the_environment_s_rules_hold(world: World, name: str) -> None:
    """Two approvals by platform admins."""
    deployment = world.serving()
    protect(world, Environment.PRODUCTION, approvals=2, role="admin", stop_needs_approval=True)
    SWITCHES[name](world.member, deployment)

    with pytest.raises(Forbidden):
        SWITCHES[name](world.lead, deployment)
    SWITCHES[name](world.admin, deployment)
    assert not is_off(name, deployment)
    with pytest.raises(DomainError):
        SWITCHES[name](world.admin, deployment)
    assert not is_off(name, deployment)
    other = User.objects.create(username="root2", is_platform_admin=True)
    SWITCHES[name](other, deployment)

    assert is_off(name, deployment)


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("who", ["member", "stranger", "viewer"])
def test_who_may_not_approve_a_change_does_not_approve_it(
    world: World, name: str, who: str
) -> None:
    deployment = world.serving()
    SWITCHES[name](world.lead, deployment)

    with refused(world, DomainError):
        SWITCHES[name](getattr(world, who), deployment)

    assert not is_off(name, deployment)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_second_account_of_the_requester_does_not_approve_it(world: World, name: str) -> None:
    deployment = world.serving()
    AccountHolder.objects.create(
        account=world.lead2, holder=world.lead, means="invitation", at=clock.now()
    )
    SWITCHES[name](world.lead, deployment)

    with pytest.raises(Forbidden) as refusal:
        SWITCHES[name](world.lead2, deployment)

    assert refusal.value.code == "four_eyes"
    assert not is_off(name, deployment)


@pytest.mark.parametrize("name", SWITCHES)
def test_putting_it_back_needs_nobody_and_ends_the_request(world: World, name: str) -> None:
    deployment = world.serving()
    SWITCHES[name](world.member, deployment)
    SWITCHES[name](world.member, deployment, is_off=False)
    assert not SafeguardRequest.objects.exists()

    # A new request, not an approval of the one that was withdrawn.
    SWITCHES[name](world.lead, deployment)
    assert not is_off(name, deployment)
    SWITCHES[name](world.lead2, deployment)
    assert is_off(name, deployment)
    SWITCHES[name](world.member, deployment, is_off=False)

    assert not is_off(name, deployment)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_request_of_last_week_is_requested_anew(world: World, name: str) -> None:
    deployment = world.serving()
    SWITCHES[name](world.member, deployment)
    SafeguardRequest.objects.update(created_at=clock.now() - timedelta(days=8))

    SWITCHES[name](world.lead, deployment)

    assert not is_off(name, deployment)
    assert SafeguardRequest.objects.get().requester == world.lead
