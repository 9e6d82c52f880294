"""Idempotency-Key for POST: a repeated request gets the first response and has no second effect."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from rest_framework.request import Request
from rest_framework.response import Response

from portal.accounts.scopes import TokenGrant
from portal.api import problems
from portal.api.models import IdempotencyRecord
from portal.core import clock
from portal.core.errors import Conflict, Invalid

_RETENTION = timedelta(hours=24)
_ABANDONED = timedelta(minutes=2)
MAX_KEY_LENGTH = 100


# For API views: a POST repeated under the same key gets the recorded response. The same key with another
# body is Invalid; a key whose first request still runs is a Conflict. A response of 500 or above is not
# recorded, so that a retry can succeed. A docstring would become the description of every operation.
class IdempotentMixin:
    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        self._idempotency_record: IdempotencyRecord | None = None
        return super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # mixed into APIView

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # type: ignore[misc]  # mixed into APIView
        key = request.headers.get("Idempotency-Key", "")
        if request.method == "POST" and key:
            self._idempotency_record = _begin(request, key)

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, _Replay):
            is_problem = (exc.record.status or 0) >= 400
            return Response(
                exc.record.body,
                status=exc.record.status,
                content_type=problems.CONTENT_TYPE if is_problem else None,
            )
        response: Response = super().handle_exception(exc)  # type: ignore[misc]  # mixed into APIView
        return response

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        record = self._idempotency_record
        if record is not None:
            if response.status_code >= 500:
                record.delete()
            else:
                record.status, record.body = response.status_code, response.data
                record.save(update_fields=["status", "body"])
        return super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]  # mixed into APIView


class _Replay(Exception):
    def __init__(self, record: IdempotencyRecord) -> None:
        super().__init__(record.key)
        self.record = record


def _begin(request: Request, key: str) -> IdempotencyRecord:
    if len(key) > MAX_KEY_LENGTH:
        raise Invalid(f"Idempotency-Key is longer than {MAX_KEY_LENGTH} characters.")
    at = clock.now()
    digest = _digest_of(request)
    records = IdempotencyRecord.objects.filter(user=request.user.pk, key=key)
    records.filter(created_at__lt=at - _RETENTION).delete()
    records.filter(status=None, created_at__lt=at - _ABANDONED).delete()
    try:
        with transaction.atomic():
            return IdempotencyRecord.objects.create(
                user_id=request.user.pk or 0, key=key, request_digest=digest, created_at=at
            )
    except IntegrityError:
        record = records.get()
    if record.request_digest != digest:
        raise Invalid("This Idempotency-Key was used for another request. Use a new one.")
    if record.status is None:
        raise Conflict(
            "The first request with this Idempotency-Key is still running. Try again soon."
        )
    raise _Replay(record)


def _digest_of(request: Request) -> str:
    """Return the digest of a request. The team to which a token is limited is a part: it must not be given the
    answer about another team.
    """
    content = request.path.encode() + b"\0" + request.body
    grant = request.auth
    if isinstance(grant, TokenGrant) and grant.team_id is not None:
        content += b"\0team %d" % grant.team_id
    return hashlib.sha256(content).hexdigest()
