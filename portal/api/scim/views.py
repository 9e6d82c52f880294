"""The SCIM 2.0 protocol (RFC 7644): what an identity provider's provisioning service calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from portal.accounts.models import ProvisionedGroup, ProvisionedPerson
from portal.accounts.oidc.providers import Provider
from portal.accounts.scim import attributes, groups, tokens, users
from portal.accounts.scim.errors import ScimError
from portal.api import throttling
from portal.api.scim import resources
from portal.core import documents, rate_limits
from portal.core.client_address import client_network

_CONTENT_TYPE: Final = "application/scim+json"


@dataclass(frozen=True, slots=True)
class Call:
    """One authenticated request."""

    provider: Provider
    base: str
    query: Mapping[str, str]
    body: bytes

    def json(self) -> Mapping[str, Any]:
        try:
            read = documents.read_json(self.body)
        except documents.UnreadableDocument as error:
            raise ScimError(
                400, f"The body cannot be read: {error.message}", "invalidSyntax"
            ) from error
        if not isinstance(read, Mapping):
            raise ScimError(400, "The body is an object.", "invalidSyntax")
        return read


class _Handler(Protocol):
    def __call__(self, call: Call, **names: str) -> HttpResponse: ...


@method_decorator(csrf_exempt, name="dispatch")
class ScimView(View):
    """No session and no API token counts here, only a provisioning token."""

    def dispatch(self, request: HttpRequest, *_: Any, **names: Any) -> HttpResponse:
        try:
            call = _call_of(request)
            handler: _Handler | None = getattr(self, f"on_{(request.method or '').lower()}", None)
            if handler is not None:
                return handler(call, **names)
            return _refuse(ScimError(405, f"{request.method} is not possible here."))
        except ScimError as error:
            return _refuse(error)


class UsersView(ScimView):
    def on_get(self, call: Call) -> HttpResponse:
        condition = attributes.parse_filter(call.query.get("filter", ""), users.FILTERS)
        rows = users.list_people(call.provider, condition)
        return _list(call, rows, lambda row: resources.user(row, call.base))

    def on_post(self, call: Call) -> HttpResponse:
        row = users.create(call.provider, attributes.user_fields(call.json()))
        return _created(resources.user(row, call.base))


class UserView(ScimView):
    def on_get(self, call: Call, key: str) -> HttpResponse:
        return _answer(resources.user(users.get(call.provider, key), call.base))

    def on_put(self, call: Call, key: str) -> HttpResponse:
        fields = attributes.user_fields(call.json())
        row = users.change(call.provider, key, fields, is_whole=True)
        return _answer(resources.user(row, call.base))

    def on_patch(self, call: Call, key: str) -> HttpResponse:
        fields = attributes.user_changes(_operations(call))
        return _answer(resources.user(users.change(call.provider, key, fields), call.base))

    def on_delete(self, call: Call, key: str) -> HttpResponse:
        users.delete(call.provider, key)
        return HttpResponse(status=204)


class GroupsView(ScimView):
    def on_get(self, call: Call) -> HttpResponse:
        condition = attributes.parse_filter(call.query.get("filter", ""), groups.FILTERS)
        rows = groups.list_groups(call.provider, condition)
        return _list(call, rows, lambda row: _group(call, row))

    def on_post(self, call: Call) -> HttpResponse:
        body = call.json()
        members = attributes.member_ids(body.get("members"))
        row = groups.create(call.provider, attributes.group_texts(body), members)
        return _created(_group(call, row))


class GroupView(ScimView):
    def on_get(self, call: Call, key: str) -> HttpResponse:
        return _answer(_group(call, groups.get(call.provider, key)))

    def on_put(self, call: Call, key: str) -> HttpResponse:
        body = call.json()
        members = attributes.member_ids(body.get("members"))
        row = groups.replace(call.provider, key, attributes.group_texts(body), members)
        return _answer(_group(call, row))

    def on_patch(self, call: Call, key: str) -> HttpResponse:
        texts, members = attributes.group_changes(_operations(call))
        row = groups.change(call.provider, key, texts, members)
        return _answer(_group(call, row))

    def on_delete(self, call: Call, key: str) -> HttpResponse:
        groups.delete(call.provider, key)
        return HttpResponse(status=204)


class ConfigView(ScimView):
    def on_get(self, call: Call) -> HttpResponse:
        return _answer(resources.service_provider_config())


class ResourceTypesView(ScimView):
    def on_get(self, call: Call) -> HttpResponse:
        rows = resources.resource_types()
        return _answer(resources.render_list(rows, total=len(rows), start=1))


class SchemasView(ScimView):
    def on_get(self, call: Call) -> HttpResponse:
        rows = resources.schemas()
        return _answer(resources.render_list(rows, total=len(rows), start=1))


def _call_of(request: HttpRequest) -> Call:
    """Raises ScimError 401 without a token, and 429 for an address that tries many."""
    scheme, _, plain = request.headers.get("Authorization", "").partition(" ")
    provider = tokens.provider_of(plain.strip()) if scheme.lower() == "bearer" else None
    if provider is None:
        if not rate_limits.count(throttling.anonymous_limit(), client_network(request)):
            raise ScimError(429, "Too many requests without a valid token.")
        raise ScimError(401, "The provisioning token is missing, unknown, expired or revoked.")
    if int(request.headers.get("Content-Length") or 0) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise ScimError(413, "The request is too large.")
    base = request.build_absolute_uri(reverse("scim-users")).removesuffix("/Users")
    return Call(provider, base, request.GET.dict(), request.body)


def _operations(call: Call) -> Any:
    body = call.json()
    return next((value for name, value in body.items() if name.lower() == "operations"), None)


def _group(call: Call, row: ProvisionedGroup) -> dict[str, Any]:
    excluded = call.query.get("excludedAttributes", "").lower().replace(" ", "").split(",")
    return resources.group(row, call.base, has_members="members" not in excluded)


def _list(call: Call, rows: QuerySet[Any], render: Any) -> HttpResponse:
    start = max(1, _number(call, "startIndex", 1))
    count = min(max(0, _number(call, "count", 100)), resources.MOST_RESULTS)
    page: list[ProvisionedPerson | ProvisionedGroup] = list(rows[start - 1 : start - 1 + count])
    body = resources.render_list([render(row) for row in page], total=rows.count(), start=start)
    return _answer(body)


def _number(call: Call, name: str, default: int) -> int:
    text = call.query.get(name, "")
    if not text:
        return default
    try:
        return min(int(text), 10**9)
    except ValueError as error:
        raise ScimError(400, f"{name} is a number.", "invalidValue") from error


def _refuse(error: ScimError) -> HttpResponse:
    body = resources.error(error.status, error.detail, error.scim_type)
    return _answer(body, status=error.status)


def _created(body: Mapping[str, Any]) -> HttpResponse:
    answer = _answer(body, status=201)
    answer["Location"] = body["meta"]["location"]
    return answer


def _answer(body: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    answer = JsonResponse(body, status=status, content_type=_CONTENT_TYPE)
    answer["Cache-Control"] = "no-store"
    if status == 401:
        answer["WWW-Authenticate"] = 'Bearer realm="slipway scim"'
    return answer


urlpatterns: list[URLPattern] = [
    path("Users", UsersView.as_view(), name="scim-users"),
    path("Users/<str:key>", UserView.as_view(), name="scim-user"),
    path("Groups", GroupsView.as_view(), name="scim-groups"),
    path("Groups/<str:key>", GroupView.as_view(), name="scim-group"),
    path("ServiceProviderConfig", ConfigView.as_view(), name="scim-config"),
    path("ResourceTypes", ResourceTypesView.as_view(), name="scim-resource-types"),
    path("Schemas", SchemasView.as_view(), name="scim-schemas"),
]
