"""Read and decide on change requests: the same addresses for every subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django.urls import URLPattern, path
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments.approvals.api.rules import TAGS as APPROVALS
from deployments.approvals.api.serializers import (
    CommentSerializer,
    DecisionSerializer,
    EmergencySerializer,
    StopReasonSerializer,
)
from deployments.changes.api.serializers import (
    NewRequestCommentSerializer,
    RequestCommentSerializer,
)
from deployments.changes.selectors import changes, comments
from deployments.changes.services import comments as comment_services
from deployments.changes.services import decisions, emergency_override, recheck
from deployments.models import ChangeRequest, Deployment, Pipeline
from deployments.preflight.api.serializers import RecheckSerializer
from portal.accounts.models import User
from portal.api.base_serializer import Serializer
from portal.api.idempotency import IdempotentMixin
from portal.api.pagination import CursorPage
from portal.api.requests import actor_of, read_body, read_query
from portal.api.responses import PROBLEM, REFUSALS


class _Changes(GenericAPIView[Any]):
    subject: ClassVar[type[Deployment | Pipeline]]
    filters: ClassVar[type[Serializer]]

    def get(self, request: Request) -> Response:
        query = read_query(self.filters, request)
        rows = changes.ids_visible_to(
            actor_of(request),
            team_slug=query.get("team"),
            state=query["state"],
            about=self.subject,
        )
        page = changes.read_listed(self.paginate_queryset(rows) or ())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class _Change(APIView):
    subject: ClassVar[type[Deployment | Pipeline]]
    serializer_class: ClassVar[Any]
    lookup_url_kwarg: ClassVar[str]

    def change_of(self, actor: User) -> ChangeRequest:
        """Return the request. Raises NotFound also for a request about another kind of subject."""
        change_id = self.kwargs[self.lookup_url_kwarg]
        return changes.get_visible(actor=actor, change_id=change_id, about=self.subject)

    def answer(self, actor: User) -> Response:
        return Response(self.serializer_class(self.change_of(actor)).data)


class _Read(_Change):
    def get(self, request: Request, **_: int) -> Response:
        return self.answer(actor_of(request))


class _Check(_Change):
    def get(self, request: Request, **_: int) -> Response:
        actor = actor_of(request)
        repeated = recheck.repeat(actor=actor, change_id=self.change_of(actor).pk)
        return Response(RecheckSerializer(repeated).data)


class _Decide(IdempotentMixin, _Change):
    body: ClassVar[type[Serializer]]
    decide: ClassVar[Callable[..., object]]

    def post(self, request: Request, **_: int) -> Response:
        body, actor = read_body(self.body, request), actor_of(request)
        self.decide(actor=actor, change_id=self.change_of(actor).pk, **body)
        return self.answer(actor)


class _OldestFirst(CursorPage):
    ordering = "id"


class _Comments(IdempotentMixin, GenericAPIView[Any]):
    pagination_class = _OldestFirst
    subject: ClassVar[type[Deployment | Pipeline]]

    def change_of(self, actor: User) -> ChangeRequest:
        change_id = self.kwargs[str(self.lookup_url_kwarg)]
        return changes.get_visible(actor=actor, change_id=change_id, about=self.subject)

    def get(self, request: Request, **_: int) -> Response:
        rows = comments.list_comments(self.change_of(actor_of(request)))
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def post(self, request: Request, **_: int) -> Response:
        actor = actor_of(request)
        body = read_body(NewRequestCommentSerializer, request)
        change = self.change_of(actor)
        comment = comment_services.add(actor=actor, change_id=change.pk, text=body["text"])
        return Response(self.get_serializer(comment).data, status=status.HTTP_201_CREATED)


@dataclass(frozen=True, slots=True)
class _Decision:
    """A decision by one POST. `{}` in the operation id is the name of the request."""

    operation_id: str
    body: type[Serializer]
    decide: Callable[..., object]
    description: str | None = None
    tags: Sequence[str] = ()


_DECISIONS: Final = {
    "approve": _Decision(
        "approve_{}",
        DecisionSerializer,
        decisions.approve,
        "Approve exactly what was shown: evidence_hash is the request's as read.",
    ),
    "reject": _Decision("reject_{}", CommentSerializer, decisions.reject),
    "withdraw": _Decision("withdraw_{}", StopReasonSerializer, decisions.withdraw),
    "approve-in-emergency": _Decision(
        "approve_{}_in_emergency",
        EmergencySerializer,
        emergency_override.approve,
        "By a lead or platform admin, never of their own request. It runs at once, and leaves a "
        "review that another lead or admin must close. Refused while a review is overdue.",
        APPROVALS,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAddresses:
    """The addresses of one subject's requests. `name` is theirs in operation ids; `listed` shows one in a list."""

    subject: type[Deployment | Pipeline]
    serializer: Any
    listed: Any
    filters: type[Serializer]
    path: str
    name: str
    tags: Sequence[str]

    @property
    def _parameter(self) -> str:
        return f"{self.name}_id"

    def urls(self) -> list[URLPattern]:
        address = f"{self.path}/<int:{self._parameter}>"
        read = {200: self.serializer, 404: PROBLEM}
        checks = {200: RecheckSerializer, 404: PROBLEM}
        return [
            path(self.path, self._list(), name=self.path),
            path(address, self._view(_Read, get=self._schema("get_{}", read)), name=self.name),
            path(
                f"{address}/checks",
                self._view(
                    _Check,
                    get=self._schema(
                        "check_{}",
                        checks,
                        description="Every check with its current result, and which results "
                        "changed since the request.",
                    ),
                ),
                name=f"{self.name}-checks",
            ),
            path(f"{address}/comments", self._comments(), name=f"{self.name}-comments"),
            *(
                path(f"{address}/{verb}", self._decision(decision), name=f"{self.name}-{verb}")
                for verb, decision in _DECISIONS.items()
            ),
        ]

    def _list(self) -> Any:
        rows = {200: self.listed(many=True), 422: PROBLEM}
        schema = self._schema("list_{}s", rows, parameters=[self.filters])
        return self._view(_Changes, get=schema, filters=self.filters, serializer_class=self.listed)

    def _comments(self) -> Any:
        rows = {200: RequestCommentSerializer(many=True), 404: PROBLEM}
        return self._view(
            _Comments,
            get=self._schema("list_{}_comments", rows, description="The comments, oldest first."),
            post=self._schema(
                "comment_on_{}",
                {201: RequestCommentSerializer, **REFUSALS},
                request=NewRequestCommentSerializer,
                description="Comment on the request. The requester and everyone who commented are "
                "notified.",
            ),
            serializer_class=RequestCommentSerializer,
        )

    def _decision(self, decision: _Decision) -> Any:
        schema = self._schema(
            decision.operation_id,
            {200: self.serializer, **REFUSALS},
            request=decision.body,
            description=decision.description,
            tags=list(decision.tags or self.tags),
        )
        decide = staticmethod(decision.decide)
        return self._view(_Decide, post=schema, body=decision.body, decide=decide)

    def _schema(self, operation_id: str, responses: dict[int, Any], **more: Any) -> Any:
        tags = more.pop("tags", list(self.tags))
        name = operation_id.format(self.name)
        return extend_schema(operation_id=name, tags=tags, responses=responses, **more)

    def _view(
        self, base: type[APIView], *, get: Any = None, post: Any = None, **attributes: Any
    ) -> Any:
        view: Any = type(
            f"{self.subject.__name__}{base.__name__}",
            (base,),
            {
                "subject": self.subject,
                "serializer_class": self.serializer,
                "lookup_url_kwarg": self._parameter,
                **attributes,
            },
        )
        schemas = {"get": get, "post": post}
        document: Any = extend_schema_view(
            **{method: schema for method, schema in schemas.items() if schema}
        )
        return document(view).as_view()
