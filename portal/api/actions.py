"""Addresses that do one thing: POST runs a service on the object of the path and shows the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.accounts.models import User
from portal.api.base_serializer import Serializer
from portal.api.idempotency import IdempotentMixin
from portal.api.requests import actor_of, read_body
from portal.api.responses import REFUSALS


# A docstring would become the description of every operation.
class _ActionView(IdempotentMixin, APIView):
    run: ClassVar[Callable[..., Any]]
    show: ClassVar[Callable[..., object]]
    body: ClassVar[type[Serializer] | None]
    shown_by: ClassVar[Any]
    status: ClassVar[int]

    def post(self, request: Request, **path: int) -> Response:
        actor = actor_of(request)
        body = read_body(self.body, request) if self.body else {}
        result = self.run(actor=actor, **path, **body)
        data = self.shown_by(self.show(actor, result)).data if self.shown_by else None
        return Response(data, status=self.status)


def action(
    run: Callable[..., Any],
    *,
    operation_id: str,
    tags: Sequence[str],
    shown_by: Any,
    body: type[Serializer] | None = None,
    show: Callable[[User, Any], object] = lambda _, result: result,
    status: int = 200,
    refusals: dict[int, OpenApiResponse] = REFUSALS,
    description: str | None = None,
) -> type[APIView]:
    """Return a view that calls `run` with the actor, the parameters of the path and the fields of `body`.

    `show` turns the result into what the serializer `shown_by` shows; without one it is empty.
    """
    attributes = {
        "run": staticmethod(run),
        "show": staticmethod(show),
        "body": body,
        "shown_by": shown_by,
        "status": status,
    }
    schema = extend_schema(
        operation_id=operation_id,
        tags=list(tags),
        request=body,
        responses={status: shown_by, **refusals},
        description=description,
    )
    view = type(f"{run.__name__}_view", (_ActionView,), attributes)
    decorated: type[APIView] = extend_schema_view(post=schema)(view)
    return decorated
