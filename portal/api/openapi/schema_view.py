"""The OpenAPI document. It is the same for everyone, so each format is rendered once per process."""

from __future__ import annotations

import hashlib
import threading
from functools import lru_cache

from django.http import HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiYamlRenderer
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.openapi.documented_only import refuse_other_parameters

_rendering = threading.Lock()


class SchemaView(SpectacularAPIView):
    @extend_schema(exclude=True)
    def get(self, request: Request, *args: object, **kwargs: object) -> HttpResponseBase:
        refuse_other_parameters(request, ())
        renderer = request.accepted_renderer
        is_json = "json" in renderer.media_type
        with _rendering:
            content = _rendered(OpenApiJsonRenderer if is_json else OpenApiYamlRenderer)
        response = HttpResponse(content, content_type=f"{renderer.media_type}; charset=utf-8")
        response["Content-Disposition"] = f'inline; filename="Slipway.{renderer.format}"'
        response["Cache-Control"] = "public, max-age=300"
        etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        response["ETag"] = etag
        patch_vary_headers(response, ["Accept"])
        return get_conditional_response(request, etag=etag, response=response) or response

    def handle_exception(self, exc: Exception) -> Response:
        """A problem is JSON also where the document would have been YAML."""
        self.request.accepted_renderer = JSONRenderer()
        return super().handle_exception(exc)


@lru_cache(maxsize=2)
def _rendered(renderer: type[BaseRenderer]) -> bytes:
    generator = SchemaGenerator(api_version="v1")  # type: ignore[no-untyped-call]  # an untyped class
    document = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # as above
    content = renderer().render(document)
    return content if isinstance(content, bytes) else str(content).encode()
