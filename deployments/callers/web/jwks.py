"""The public keys that verify signed keys of callers, for everyone: `/.well-known/jwks.json`."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition, require_safe

from deployments.callers.selectors import public_keys

# A key is published from the moment before it first signs; gateways get it with their policies.
_SECONDS = 300


@require_safe
@cache_control(public=True, max_age=_SECONDS)
@condition(etag_func=lambda _request: public_keys.etag())
def jwks(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(public_keys.jwks(), content_type="application/jwk-set+json")
