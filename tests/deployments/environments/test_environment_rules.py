"""Which environment a request enters decides who approves it and what its version must have shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployments.approvals.selectors import approvals
from deployments.changes.selectors.subjects import deployment_of
from deployments.changes.services import decisions, requests
from deployments.environments.domain.environment_rules import EnvironmentRules
from deployments.environments.selectors import environment_rules as selectors
from deployments.environments.services import environment_rules
from deployments.lifecycle.services import stop
from deployments.models import ChangeRequest, Deployment, EnvironmentRule
from deployments.pipelines.services import requests as pipeline_requests
from deployments.states import ChangeState, Environment
from fleet.models import Cluster
from portal.accounts.models import Team, User
from portal.audit.models import AuditEvent
from portal.core.errors import Conflict, Forbidden, Invalid, NotFound
from tests.deployments.refusals import refused
from tests.deployments.world import World

TWO = EnvironmentRules(approvals=2, stop_needs_approval=True)


def set_rules(
    actor: User,
    rules: EnvironmentRules,
    *,
    environment: str = "production",
    team: Team | None = None,
    clusters: tuple[int, ...] = (),
) -> None:
    environment_rules.change(
        actor=actor, environment=environment, team=team, rules=rules, cluster_ids=clusters
    )


def deploy(world: World, environment: str = "production", name: str = "detector") -> ChangeRequest:
    return requests.request_deploy(
        actor=world.member, draft=world.draft(name=name, environment=environment)
    )


def rules_required(change: ChangeRequest) -> list[tuple[str, int, str]]:
    return [
        (row.requirement.rule, row.requirement.needed, row.requirement.role.value)
        for row in approvals.status_of(change).rows
    ]


def test_the_environment_decides_how_many_approve(world: World) -> None:
    set_rules(world.admin, TWO)

    production, staging = deploy(world), deploy(world, "staging", "trial")

    assert rules_required(production) == [("Environment production", 2, "lead")]
    assert rules_required(staging) == [("Four eyes", 1, "lead")]
    first = decisions.approve(
        actor=world.lead, change_id=production.pk, evidence_hash=production.evidence_hash
    )
    assert first.state == ChangeState.SUBMITTED
    second = decisions.approve(
        actor=world.lead2, change_id=production.pk, evidence_hash=production.evidence_hash
    )
    assert second.state == ChangeState.APPROVED


def test_a_team_adds_to_the_platform_and_the_stricter_counts(world: World) -> None:
    set_rules(world.admin, TWO)
    set_rules(world.lead, EnvironmentRules(role="admin"), team=world.team)

    change = deploy(world)

    assert rules_required(change) == [
        ("Environment production", 2, "lead"),
        ("Environment production of vision", 1, "admin"),
    ]
    assert selectors.in_force("production", world.team.pk) == replace(TWO, role="admin")
    assert selectors.in_force("production", Team.objects.get(slug="nlp").pk) == TWO


def test_approvals_of_before_are_void_once_the_rules_change(world: World) -> None:
    set_rules(world.admin, TWO)
    change = deploy(world)
    decisions.approve(actor=world.lead, change_id=change.pk, evidence_hash=change.evidence_hash)

    set_rules(world.admin, replace(TWO, approvals=3))
    world.work()

    change.refresh_from_db()
    assert [row.void_reason != "" for row in change.approvals.all()] == [True]
    assert rules_required(change) == [("Environment production", 3, "lead")]


def test_stopping_needs_approval_where_the_rules_say_so(world: World) -> None:
    staging = world.serving(environment="staging")
    set_rules(
        world.lead,
        EnvironmentRules(stop_needs_approval=True),
        environment="staging",
        team=world.team,
    )

    with refused(world, Forbidden, "approval_required"):
        stop.stop(actor=world.lead, deployment_id=staging.pk)

    set_rules(world.admin, EnvironmentRules(), environment="staging", team=world.team)
    stop.stop(actor=world.lead, deployment_id=staging.pk)
    assert Deployment.objects.get().is_stopped


def test_an_open_address_is_refused_where_callers_need_a_key(world: World) -> None:
    set_rules(world.admin, EnvironmentRules(callers_need_key=True))

    with refused(world, Invalid) as raised:
        deploy(world)

    assert raised[0].message.startswith("Callers: The rules of production allow no public address.")
    deploy(world, "staging")


def test_a_reserved_cluster_admits_only_its_environments(world: World) -> None:
    set_rules(world.admin, TWO, clusters=(world.cluster_id,))

    with refused(world, Invalid) as raised:
        deploy(world, "development")

    assert raised[0].fields["environment"] == (
        "eks-test is reserved for production, and this is a request for development. "
        "Choose production, or another cluster."
    )
    assert deploy(world).state == ChangeState.SUBMITTED
    with refused(world, Invalid):
        pipeline_requests.request_create(
            actor=world.member,
            draft=pipeline_requests.PipelineDraft(
                team="vision",
                cluster_id=world.cluster_id,
                environment=Environment.DEVELOPMENT,
                name="both",
                spec={},
            ),
        )


def test_an_address_keeps_the_environment_in_which_it_served(world: World) -> None:
    served = world.serving()
    change = requests.request_retire(actor=world.member, deployment_id=served.pk)
    world.approved(change)
    world.reconcile_now(served)
    assert served.is_retired

    with refused(world, Invalid) as raised:
        deploy(world, "development")

    assert raised[0].fields["environment"] == (
        "vision/detector on eks-test served in production, so its address stays there. "
        "Choose production, or another name."
    )
    assert deployment_of(deploy(world)).environment == "production"


def test_an_address_that_never_served_is_free(world: World) -> None:
    change = deploy(world)
    decisions.withdraw(actor=world.member, change_id=change.pk)

    assert deployment_of(deploy(world, "staging")).environment == "staging"


def test_a_lead_adds_rules_but_takes_none_away(world: World) -> None:
    set_rules(world.lead, replace(TWO, golden_required=True), team=world.team)
    before = EnvironmentRule.objects.values().get()

    with refused(world, Forbidden, "rules_weaker") as raised:
        set_rules(world.lead, EnvironmentRules(), team=world.team)

    assert raised[0].message == (
        "This asks for less than before (approvals, stop needs approval, golden required). "
        "Only a platform admin can do that."
    )
    assert EnvironmentRule.objects.values().get() == before
    set_rules(world.admin, EnvironmentRules(), team=world.team)
    assert selectors.rules_of(EnvironmentRule.objects.get()) == EnvironmentRules()


@pytest.mark.parametrize(
    ("who", "is_platform", "error"),
    [
        ("lead", True, Forbidden),
        ("member", False, Forbidden),
        ("viewer", False, Forbidden),
        ("stranger", False, NotFound),
    ],
)
def test_others_change_no_rules(
    world: World, who: str, is_platform: bool, error: type[Forbidden | NotFound]
) -> None:
    with refused(world, error):
        set_rules(getattr(world, who), TWO, team=None if is_platform else world.team)

    assert not EnvironmentRule.objects.exists()


@pytest.mark.parametrize(
    ("rules", "environment", "clusters", "field"),
    [
        (EnvironmentRules(approvals=0), "production", (), "approvals"),
        (EnvironmentRules(approvals=6), "production", (), "approvals"),
        (EnvironmentRules(role="viewer"), "production", (), "role"),
        (EnvironmentRules(promoted_from="production"), "production", (), "promoted_from"),
        (EnvironmentRules(promoted_from="staging"), "development", (), "promoted_from"),
        (EnvironmentRules(), "production", (999,), "clusters"),
    ],
)
def test_rules_that_make_no_sense_are_refused(
    world: World,
    rules: EnvironmentRules,
    environment: str,
    clusters: tuple[int, ...],
    field: str,
) -> None:
    with refused(world, Invalid) as raised:
        set_rules(world.admin, rules, environment=environment, clusters=clusters)

    assert set(raised[0].fields) == {field}
    assert not EnvironmentRule.objects.exists()


def test_a_team_reserves_no_cluster(world: World) -> None:
    with refused(world, Invalid) as raised:
        set_rules(world.lead, TWO, team=world.team, clusters=(world.cluster_id,))

    assert raised[0].fields == {"clusters": "only the platform reserves clusters"}


def test_a_change_of_rules_is_in_the_audit_trail(world: World) -> None:
    set_rules(world.admin, TWO, clusters=(world.cluster_id,))

    event = AuditEvent.objects.get(action="environment.changed")
    assert (event.actor_name, event.object_label) == ("admin", "production of the platform")
    assert (event.before["approvals"], event.after["approvals"]) == (1, 2)
    assert (event.before["clusters"], event.after["clusters"]) == ([], [world.cluster_id])


def test_rules_of_an_unknown_environment_are_not_found(world: World) -> None:
    with refused(world, NotFound):
        set_rules(world.admin, TWO, environment="moon")


def test_two_first_changes_at_once_are_a_conflict(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_rules(world.admin, TWO)
    rows = EnvironmentRule.objects.none()
    monkeypatch.setattr(EnvironmentRule.objects, "select_for_update", lambda **_: rows)

    with refused(world, Conflict, "rules_changed"):
        set_rules(world.admin, replace(TWO, approvals=3))

    assert EnvironmentRule.objects.get().approvals == 2


def test_a_removed_cluster_reserves_nothing(world: World) -> None:
    other = Cluster.objects.create(name="gone", kind="eks", created_at=world.clock.at)
    set_rules(world.admin, TWO, clusters=(other.pk,))

    other.delete()

    assert selectors.list_admitted(world.cluster_id) == ()
    assert EnvironmentRule.objects.get().approvals == 2
