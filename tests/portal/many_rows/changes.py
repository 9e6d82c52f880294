"""Change requests and what follows from them: approvals, reviews, rollouts, rules, advice and alerts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from deployments.models import (
    AdviceItem,
    Alert,
    Approval,
    ApprovalRule,
    ChangeRequest,
    Deployment,
    EmergencyReview,
    EnvironmentRule,
    GoldenRequest,
    GoldenResult,
    GoldenRun,
    Pipeline,
    Rollout,
    RolloutEvent,
    RolloutVerdict,
)
from fleet.models import Node
from portal.accounts.models import Team, User
from portal.core import clock
from tests.portal.api.full_world import FullWorld
from tests.portal.many_rows.copies import copies


def fill(full: FullWorld, scale: float, people: Sequence[User]) -> None:
    done = _changes(full, scale)
    _decisions(full, scale, done, people)
    _rollouts(full, scale, done)
    _rules(full, scale)
    _to_act_on(full, scale)


def _changes(full: FullWorld, scale: float) -> list[ChangeRequest]:
    """Of the deployment. All others have one each: done, or waiting for an approval."""
    now = clock.now()
    change = ChangeRequest.objects.get(pk=full.names["change_id"])
    done = copies(
        change,
        300 * scale,
        state=lambda _: "done",
        created_at=lambda n: now - timedelta(hours=n),
        finished_at=lambda n: now - timedelta(hours=n),
    )
    deployments = list(Deployment.objects.exclude(pk=full.deployment.pk).order_by("pk"))
    if deployments:
        copies(
            change,
            len(deployments),
            deployment_id=lambda n: deployments[n - 1].pk,
            team_id=lambda n: deployments[n - 1].team_id,
            revision_id=lambda n: deployments[n - 1].stable_revision_id,
            state=lambda n: "submitted" if n % 20 == 0 else "done",
            requester_id=lambda _: full.world.member.pk,
            created_at=lambda n: now - timedelta(minutes=n),
            submitted_at=lambda n: now - timedelta(minutes=n),
            finished_at=lambda n: None if n % 20 == 0 else now,
        )
    pipelines = list(Pipeline.objects.exclude(pk=full.names["pipeline_id"]))
    copies(
        ChangeRequest.objects.get(pk=full.names["pipeline_change_id"]),
        len(pipelines),
        pipeline_id=lambda n: pipelines[n - 1].pk,
        team_id=lambda n: pipelines[n - 1].team_id,
        state=lambda n: "submitted" if n % 3 == 0 else "done",
    )
    return done


def _decisions(
    full: FullWorld, scale: float, done: Sequence[ChangeRequest], people: Sequence[User]
) -> None:
    approval = Approval.objects.filter(change_id=full.names["change_id"]).order_by("pk")[0]
    changes = [full.names["change_id"], *(change.pk for change in done)]
    copies(
        approval,
        2 * len(changes) - 2,
        change_id=lambda n: changes[1 + n % (len(changes) - 1)],
        user_id=lambda n: people[n % len(people)].pk,
        void_reason=lambda n: "The evidence changed." if n % 2 else f"Again {n}.",
    )
    copies(
        approval,
        20 * scale,
        user_id=lambda n: people[n % len(people)].pk,
        void_reason=lambda _: "The evidence changed.",
    )
    copies(
        EmergencyReview.objects.get(pk=full.names["review_id"]),
        len(done),
        change_id=lambda n: done[n - 1].pk,
        closed_at=lambda n: None if n % 3 else clock.now(),
        closed_by_id=lambda n: None if n % 3 else full.world.admin.pk,
        finding=lambda n: "" if n % 3 else "It was right.",
    )


def _rollouts(full: FullWorld, scale: float, done: Sequence[ChangeRequest]) -> None:
    rollout = Rollout.objects.get(pk=full.names["rollout_id"])
    ended = copies(
        rollout,
        len(done),
        change_id=lambda n: done[n - 1].pk,
        phase=lambda n: "completed" if n % 2 else "aborted",
        finished_at=lambda _: clock.now(),
    )
    now = clock.now()
    event = RolloutEvent.objects.filter(rollout=rollout).order_by("-pk")[0]
    copies(event, 500 * scale, at=lambda n: now - timedelta(seconds=5 * n))
    verdict = RolloutVerdict.objects.create(
        rollout=rollout,
        at=now,
        phase="running",
        step_index=0,
        evidence_hash=rollout.evidence_hash,
        guards=rollout.evidence,
    )
    copies(verdict, 200 * scale, at=lambda n: now - timedelta(seconds=5 * n))
    run, _ = GoldenRun.objects.get_or_create(
        rollout=rollout, purpose="before traffic", defaults={"created_at": now}
    )
    copies(run, len(ended), rollout_id=lambda n: ended[n - 1].pk)
    golden = GoldenRequest.objects.exclude(results__run=run).filter(retired_at=None)
    GoldenResult.objects.bulk_create(
        GoldenResult(run=run, golden=item, verdict="pass", checked_at=now) for item in golden
    )


def _rules(full: FullWorld, scale: float) -> None:
    rule = ApprovalRule.objects.get(pk=full.names["rule_id"])
    copies(rule, 100 * scale, name=lambda n: f"rule-{n}")
    EnvironmentRule.objects.bulk_create(
        EnvironmentRule(
            environment=environment, team=team, approvals=2, role="lead", changed_at=clock.now()
        )
        for team in Team.objects.filter(pk__gt=0)
        for environment in ("development", "staging", "production")
        if not EnvironmentRule.objects.filter(team=team, environment=environment).exists()
    )


def _to_act_on(full: FullWorld, scale: float) -> None:
    now = clock.now()
    deployments = list(Deployment.objects.exclude(pk=full.deployment.pk).order_by("pk"))
    item = AdviceItem.objects.get(pk=full.names["item_id"])
    nodes = list(Node.objects.order_by("pk")[: max(2, round(300 * scale))])
    copies(
        item,
        len(nodes),
        deployment_id=lambda _: None,
        team_id=lambda _: None,
        node_uid=lambda n: nodes[n - 1].uid,
        subject=lambda n: f"{nodes[n - 1].name} on large",
    )
    done = list(ChangeRequest.objects.filter(deployment=full.deployment, state="done")[:50])
    copies(
        item,
        len(done),
        change_id=lambda n: done[n - 1].pk,
        state=lambda n: "checked" if n % 2 else "applied",
        applied_at=lambda n: now - timedelta(days=n),
        realised_amount=lambda _: item.saving_amount,
        realised_hours=lambda _: 730,
    )
    alert = Alert.objects.get(pk=full.names["alert_id"])
    copies(
        alert,
        500 * scale,
        opened_at=lambda n: now - timedelta(hours=n + 1),
        ended_at=lambda n: now - timedelta(hours=n),
        told_at=lambda n: now - timedelta(hours=n),
    )
    if deployments:
        copies(
            item,
            len(deployments),
            deployment_id=lambda n: deployments[n - 1].pk,
            team_id=lambda n: deployments[n - 1].team_id,
            subject=lambda n: deployments[n - 1].name,
            state=lambda n: ("open", "open", "snoozed", "dismissed")[n % 4],
        )
        copies(
            alert,
            len(deployments),
            deployment_id=lambda n: deployments[n - 1].pk,
            team_id=lambda n: deployments[n - 1].team_id,
            key=lambda n: f"deployment-{n}",
            ended_at=lambda n: None if n % 4 == 0 else now,
        )
