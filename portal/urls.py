"""All URLs: pages at the root, the API under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularSwaggerSplitView

from portal.api import health, views
from portal.api.schema_view import SchemaView
from portal.ui import sign_in_code, sign_in_session, single_sign_on
from portal.ui.sign_in import SignIn

api_v1: list[URLPattern | URLResolver] = [
    path("", include("portal.api.urls")),
    path("", include("deployments.api_urls")),
    path("", include("fleet.api_urls")),
    path("schema", SchemaView.as_view(), name="schema"),
    # Last: unknown addresses of the API get a problem instead of a page.
    re_path("", views.UnknownView.as_view(), name="unknown"),
]

urlpatterns = [
    path("healthz", health.is_running, name="healthz"),
    path("readyz", health.is_ready, name="readyz"),
    path("sign-in", SignIn.as_view(), name="sign-in"),
    path("sign-in/code", sign_in_code.enter, name="sign-in-code"),
    # allauth looks the addresses up by these names.
    path("sign-in/with/<str:provider_id>", single_sign_on.begin, name="openid_connect_login"),
    path(
        "sign-in/with/<str:provider_id>/callback",
        single_sign_on.callback,
        name="openid_connect_callback",
    ),
    path("sign-out", sign_in_session.SignOut.as_view(), name="sign-out"),
    path("scim/v2/", include("portal.api.scim.views")),
    path("api/v1/", include((api_v1, "v1"), namespace="v1")),
    path("api/docs", SpectacularSwaggerSplitView.as_view(url_name="v1:schema"), name="api-docs"),
    path("", include("portal.dashboard.accounts.urls")),
    path("", include("portal.dashboard.urls")),
    path("", include("deployments.urls")),
    path("", include("fleet.urls")),
]

handler400 = "portal.api.border.bad_request"
handler500 = "portal.api.border.server_error"
