"""Advice on the deployments of a team, those that go together included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deployments.advice.domain import catalogue
from deployments.advice.domain.advice import Saving
from deployments.advice.domain.kinds import multi_model
from deployments.advice.selectors import facts
from deployments.models import AdviceItem, Deployment
from deployments.states import AdviceState
from portal.accounts.models import Team

_DECLINED = (AdviceState.SNOOZED, AdviceState.DISMISSED)


def compute(
    team: Team, *, wanted_of: int | None = None
) -> Iterator[tuple[Deployment, Mapping[str, Saving]]]:
    """Yield each deployment of the team with its savings by kind.

    Deployments whose move beside another model was snoozed or dismissed join no group, except `wanted_of`.
    """
    listed = list(facts.list_deployments(team))
    declined = AdviceItem.objects.filter(team=team, kind=multi_model.CODE, state__in=_DECLINED)
    advice = catalogue.advise_team(
        {deployment.pk: known for deployment, known in listed},
        declined=set(declined.values_list("deployment_id", flat=True)) - {wanted_of},
    )
    for deployment, _ in listed:
        yield deployment, advice[deployment.pk]
