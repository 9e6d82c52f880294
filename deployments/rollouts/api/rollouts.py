"""Rollouts in the API."""

from __future__ import annotations

from functools import partial

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.serializers import StopReasonSerializer
from deployments.models import Rollout
from deployments.rollouts.api.serializers import PromoteSerializer, RolloutSerializer
from deployments.rollouts.selectors import rollouts
from deployments.rollouts.services import actions
from portal.accounts.models import User
from portal.api.actions import action
from portal.api.requests import actor_of
from portal.api.responses import PROBLEM

ROLLOUTS = ["rollouts"]


class RolloutView(APIView):
    @extend_schema(
        operation_id="get_rollout",
        tags=ROLLOUTS,
        responses={200: RolloutSerializer, 404: PROBLEM},
    )
    def get(self, request: Request, rollout_id: int) -> Response:
        actor = actor_of(request)
        rollout = rollouts.get_visible(actor=actor, rollout_id=rollout_id)
        return Response(RolloutSerializer(rollouts.view_of(actor=actor, rollout=rollout)).data)


def _show(actor: User, rollout: Rollout) -> rollouts.RolloutSummary:
    """Show the rollout as it is after the action."""
    fresh = rollouts.get_visible(actor=actor, rollout_id=rollout.pk)
    return rollouts.view_of(actor=actor, rollout=fresh)


_action = partial(action, tags=ROLLOUTS, shown_by=RolloutSerializer, show=_show)

PromoteView = _action(
    actions.promote,
    operation_id="promote_rollout",
    body=PromoteSerializer,
    description="To the next step. Refused when a verdict has changed since it was shown.",
)
PromoteFullyView = _action(
    actions.promote_fully,
    operation_id="promote_rollout_fully",
    body=PromoteSerializer,
    description="All requests at once. Refused while a guard fails.",
)
PauseView = _action(actions.pause, operation_id="pause_rollout", body=StopReasonSerializer)
FinishWatchView = _action(
    actions.finish_watch,
    operation_id="finish_rollout_watch",
    description="Ends the watch after promotion: the old revision is removed once it is drained.",
)
UnpauseView = _action(actions.unpause, operation_id="unpause_rollout")
AbortView = _action(
    actions.abort,
    operation_id="abort_rollout",
    body=StopReasonSerializer,
    description="Sends all requests back to stable. Allowed until the rollout has finished.",
)
