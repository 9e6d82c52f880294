"""The audit trail in the API."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts import policy
from portal.accounts.policy import Action
from portal.api.base_serializer import Serializer
from portal.api.requests import actor_of, read_query
from portal.api.responses import PROBLEM
from portal.audit import export, reads

_MAX: Final = 1000


class AuditQuerySerializer(Serializer):
    after = serializers.IntegerField(
        default=0, min_value=0, max_value=2**63 - 1, help_text="`next_after` of the last answer"
    )
    since = serializers.DateTimeField(required=False, help_text="events from this time on")
    limit = serializers.IntegerField(default=200, min_value=1, max_value=_MAX)


class AuditEventSerializer(Serializer):
    id = serializers.IntegerField()
    at = serializers.CharField(help_text="UTC, with microseconds")
    action = serializers.CharField()
    actor_id = serializers.IntegerField(allow_null=True)
    actor_name = serializers.CharField()
    team_slug = serializers.CharField()
    object_type = serializers.CharField()
    object_id = serializers.CharField()
    object_label = serializers.CharField()
    before = serializers.DictField()
    after = serializers.DictField()
    reason = serializers.CharField()
    evidence = serializers.CharField()


class AuditRecordSerializer(Serializer):
    position = serializers.IntegerField(help_text="place in the chain")
    hash = serializers.CharField()
    previous = serializers.CharField(help_text="hash of the position before")
    event = AuditEventSerializer(
        allow_null=True, help_text="Null if the record was deleted in the database."
    )


class AuditPageSerializer(Serializer):
    records = AuditRecordSerializer(many=True)
    next_after = serializers.IntegerField(
        help_text="Cursor for later records, present even when there are none yet."
    )


class AuditView(APIView):
    @extend_schema(
        operation_id="export_audit_trail",
        tags=["audit"],
        parameters=[AuditQuerySerializer],
        responses={200: AuditPageSerializer, 403: PROBLEM, 422: PROBLEM},
        description=(
            "All teams' events in the order of their chain, for platform admins in a browser session. "
            "An event gets its position seconds after its commit. The export is recorded as an event, too."
        ),
    )
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        policy.require_platform_admin(actor, Action.VIEW_AUDIT)
        query = read_query(AuditQuerySerializer, request)
        reads.record(actor=actor, action=reads.TRAIL_EXPORTED, obj=actor, label="all teams")
        after: int = query["after"]
        rows: list[dict[str, Any]] = list(
            islice(export.records(after=after, since=query.get("since")), query["limit"])
        )
        next_after = rows[-1]["position"] if rows else after
        return Response(AuditPageSerializer({"records": rows, "next_after": next_after}).data)
