"""Fleet actions in the API: requesting, deciding and reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fleet.actions.api.serializers import (
    ActionCommentSerializer,
    ActionFilterSerializer,
    ActionReasonSerializer,
    ApproveActionSerializer,
    DrainSerializer,
    FleetActionDetailsSerializer,
    FleetActionSerializer,
    GpuSharingSerializer,
    MigLayoutSerializer,
)
from fleet.actions.domain.evidence import Evidence
from fleet.actions.selectors import actions
from fleet.actions.services import decisions, requests
from fleet.models import FleetAction
from portal.accounts.models import User
from portal.api.actions import action
from portal.api.pagination import CursorPage
from portal.api.requests import actor_of, read_query

_TAGS: Final = ["fleet"]
HOW: Final = (
    "Nothing happens before another platform admin approves it; a worker then carries it out. For leads "
    "and platform admins."
)


@dataclass(frozen=True, slots=True)
class Details:
    """An action with what the reader may see of its evidence."""

    action: FleetAction
    evidence: Evidence
    why_not_decide: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.action, name)


def details(actor: User, row: FleetAction) -> Details:
    return Details(row, actions.evidence_for(actor, row), actions.why_not_decide(actor, row))


class FleetActionsView(GenericAPIView[FleetAction]):
    serializer_class = FleetActionSerializer
    pagination_class = CursorPage

    @extend_schema(
        operation_id="fleet_actions",
        tags=_TAGS,
        description="Requested actions on nodes, the newest first.",
        parameters=[ActionFilterSerializer],
        responses=FleetActionSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        query = read_query(ActionFilterSerializer, request)
        rows = actions.list_matching(state=query.get("state"), cluster_id=query.get("cluster"))
        page = self.paginate_queryset(rows) or []
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class FleetActionView(APIView):
    @extend_schema(
        operation_id="fleet_action",
        tags=_TAGS,
        description="One action with what its request showed: deployments of other teams are counted, "
        "not named.",
        responses=FleetActionDetailsSerializer,
    )
    def get(self, request: Request, action_id: int) -> Response:
        actor = actor_of(request)
        shown = details(actor, actions.get_action(action_id))
        return Response(FleetActionDetailsSerializer(shown).data)


def _request(run: Any, operation_id: str, description: str, body: Any) -> type[APIView]:
    return action(
        run,
        operation_id=operation_id,
        tags=_TAGS,
        body=body,
        shown_by=FleetActionDetailsSerializer,
        show=details,
        status=201,
        description=f"{description} {HOW}",
    )


def _decide(run: Any, operation_id: str, description: str, body: Any) -> type[APIView]:
    return action(
        run,
        operation_id=operation_id,
        tags=_TAGS,
        body=body,
        shown_by=FleetActionDetailsSerializer,
        show=details,
        description=description,
    )


CordonView = _request(
    requests.request_cordon,
    "node_cordon",
    "Request that no new pods start on the node.",
    ActionCommentSerializer,
)
UncordonView = _request(
    requests.request_uncordon,
    "node_uncordon",
    "Request that new pods may start on the node again.",
    ActionCommentSerializer,
)
DrainView = _request(
    requests.request_drain,
    "node_drain",
    "Request that the node is cordoned and its pods are evicted, as their disruption budgets allow.",
    DrainSerializer,
)
MigLayoutView = _request(
    requests.request_mig_layout,
    "node_mig_layout",
    "Request that the node is drained and NVIDIA's MIG manager partitions its GPUs by this layout. If it fails, the "
    "node stays cordoned.",
    MigLayoutSerializer,
)
GpuSharingView = _request(
    requests.request_gpu_sharing,
    "node_gpu_sharing",
    "Request that the node is drained and its device plugin gets another configuration: time-slicing, MPS, or none.",
    GpuSharingSerializer,
)
ApproveView = _decide(
    decisions.approve,
    "fleet_action_approve",
    "Approve what was shown. For platform admins who did not request it.",
    ApproveActionSerializer,
)
RejectView = _decide(
    decisions.reject,
    "fleet_action_reject",
    "Reject a request, with a reason. For platform admins who did not request it.",
    ActionCommentSerializer,
)
WithdrawView = _decide(
    decisions.withdraw,
    "fleet_action_withdraw",
    "Take a request back before it starts.",
    ActionReasonSerializer,
)
CancelView = _decide(
    decisions.cancel,
    "fleet_action_cancel",
    "Stop a running action. Changes to the node are reverted; evicted pods stay where they are.",
    ActionReasonSerializer,
)
