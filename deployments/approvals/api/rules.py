"""Approval rules in the API."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.serializers import RuleSerializer
from deployments.approvals.selectors import approvals as approval_selectors
from deployments.approvals.services import rules
from deployments.approvals.services.rules import RuleDraft
from deployments.models import ApprovalRule
from portal.accounts import policy
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import PROBLEM, REFUSALS

TAGS = ["approvals"]


class RulesView(IdempotentMixin, APIView):
    @extend_schema(
        operation_id="list_approval_rules",
        tags=TAGS,
        responses=RuleSerializer(many=True),
        description=(
            "Rules of your teams and of all teams. Every change also needs approval by a lead or "
            "platform admin other than the requester."
        ),
    )
    def get(self, request: Request) -> Response:
        rows = approval_selectors.list_rules(actor_of(request))
        return Response([_body_of(row) for row in rows])

    @extend_schema(
        operation_id="make_approval_rule",
        tags=TAGS,
        request=RuleSerializer,
        responses={201: RuleSerializer, 403: PROBLEM, 409: PROBLEM, 422: PROBLEM},
    )
    def post(self, request: Request) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        row = rules.make(actor=actor, draft=_draft(read_body(RuleSerializer, request)))
        return Response(_body_of(row), status=status.HTTP_201_CREATED)


class RuleView(APIView):
    @extend_schema(
        operation_id="change_approval_rule",
        tags=TAGS,
        request=RuleSerializer,
        responses={200: RuleSerializer, **REFUSALS},
        description="Approvals given under the old rule become void where it applies.",
    )
    def put(self, request: Request, rule_id: int) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor)
        draft = _draft(read_body(RuleSerializer, request))
        return Response(_body_of(rules.change(actor=actor, rule_id=rule_id, draft=draft)))

    @extend_schema(
        operation_id="delete_approval_rule",
        tags=TAGS,
        responses={204: None, 403: PROBLEM, 404: PROBLEM, 409: PROBLEM},
        description="Platform admins only, and only while no open request needs its approval.",
    )
    def delete(self, request: Request, rule_id: int) -> Response:
        rules.delete(actor=actor_of(request), rule_id=rule_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _draft(body: dict[str, Any]) -> RuleDraft:
    return RuleDraft(
        name=body["name"],
        team=body["team"],
        environments=tuple(body["environments"]),
        kinds=tuple(body["kinds"]),
        above_month_amount=body["above_month_amount"],
        gpus=tuple(body["gpus"]),
        only_opening=body["only_opening"],
        role=body["role"],
        people=tuple(body["people"]),
        needed=body["needed"],
        is_enabled=body["is_enabled"],
    )


def _body_of(row: ApprovalRule) -> dict[str, Any]:
    draft = {"id": row.pk, **asdict(rules.draft_of(row))}
    body: dict[str, Any] = RuleSerializer(draft).data
    return body
