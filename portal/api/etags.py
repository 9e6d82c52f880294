"""ETag and If-Match: an edit based on an outdated version is refused with 412."""

from __future__ import annotations

import hashlib
import json
from typing import Any, ClassVar

from django.core.serializers.json import DjangoJSONEncoder
from django.utils.http import parse_etags
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core import locks
from portal.core.errors import Stale


# For API views whose PATCH or PUT changes and returns the resource of their GET. Edits with If-Match are
# serialized, so of two edits of the same version only one succeeds. A docstring would become the
# description of every operation.
class ConditionalMixin:
    guarded: ClassVar = frozenset({"PATCH", "PUT"})

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_conditional(request):
            return super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # mixed into APIView
        with locks.advisory_lock(request.path):
            return super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # mixed into APIView

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # type: ignore[misc]  # mixed into APIView
        if not _is_conditional(request):
            return
        current: Response = self.get(request, *args, **kwargs)  # type: ignore[attr-defined]  # the view's own
        known = parse_etags(request.headers["If-Match"])
        if "*" not in known and etag_of(current.data) not in known:
            raise Stale(
                "The resource has changed since you read it. Read it again and repeat your edit."
            )

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        if response.status_code == 200 and request.method in {"GET", *self.guarded}:
            response["ETag"] = etag_of(response.data)
        return super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]  # mixed into APIView


def etag_of(data: Any) -> str:
    text = json.dumps(data, cls=DjangoJSONEncoder, sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def _is_conditional(request: Any) -> bool:
    return request.method in ConditionalMixin.guarded and "If-Match" in request.headers
