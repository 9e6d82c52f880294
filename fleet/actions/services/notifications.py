"""Queue notifications about a fleet action. Call inside its transaction."""

from __future__ import annotations

from django.urls import reverse

from fleet.actions.domain.evidence import Evidence
from fleet.models import FleetAction
from portal.accounts.models import Team
from portal.notifications import events, services


def notify_request(action: FleetAction) -> None:
    message = f"{action.requester.display_name} requested it. {action.comment}".strip()
    _platform(action, events.FLEET_REQUESTED.code, f"{title_of(action)}: approval needed", message)


def notify_decision(action: FleetAction, *, message: str) -> None:
    _platform(action, events.FLEET_DECIDED.code, f"{title_of(action)}: {action.state}", message)


def notify_result(action: FleetAction, *, message: str) -> None:
    _platform(action, events.FLEET_FINISHED.code, f"{title_of(action)}: {action.state}", message)


def notify_start(action: FleetAction) -> None:
    """Tell the teams whose pods will move."""
    evidence = Evidence.from_json(action.evidence)
    names: dict[str, list[str]] = {}
    for row in evidence.deployments:
        if row.team_slug and row.deployment:
            names.setdefault(row.team_slug, []).append(row.deployment)
    for team in Team.objects.filter(slug__in=names):
        moved = ", ".join(sorted(set(names[team.slug])))
        services.notify(
            team=team,
            event=events.FLEET_DECIDED.code,
            subject=f"{title_of(action)}: pods of {team.slug} move",
            message=f"Pods of these deployments are evicted and start on other nodes: {moved}. Their "
            "disruption budgets are respected.",
            path=path_of(action),
            data={"fleet_action": action.pk},
        )


def title_of(action: FleetAction) -> str:
    return f"{action.title} on {action.cluster.name}"


def path_of(action: FleetAction) -> str:
    return reverse("fleet-action", args=(action.pk,))


def _platform(action: FleetAction, event: str, subject: str, message: str) -> None:
    services.notify_platform(
        event=event,
        subject=subject,
        message=message,
        path=path_of(action),
        people=[action.requester_id],
    )
