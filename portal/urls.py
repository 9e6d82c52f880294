"""All URLs: pages at the root, the API under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path, re_path

from deployments import api_urls as deployments_urls
from fleet import api_urls as fleet_urls
from portal.api import health, views
from portal.api import urls as account_urls
from portal.api.openapi.schema_view import SchemaView
from portal.dashboard import home_urls
from portal.ui import sign_in_code, sign_in_session, single_sign_on
from portal.ui.sign_in import SignIn

api_v1: list[URLPattern | URLResolver] = [
    *account_urls.urlpatterns,
    *deployments_urls.urlpatterns,
    *fleet_urls.urlpatterns,
    path("schema", SchemaView.as_view(), name="schema"),
    # Last: unknown addresses of the API get a problem instead of a page.
    re_path("", views.UnknownView.as_view(), name="unknown"),
]

urlpatterns = [
    path("healthz", health.is_running, name="healthz"),
    path("readyz", health.is_ready, name="readyz"),
    path("api/v1/", include((api_v1, "v1"), namespace="v1")),
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
    path("", include("portal.dashboard.accounts.urls")),
    path("", include("portal.dashboard.urls")),
    path("", include("deployments.urls")),
    path("", include("fleet.urls")),
    path("", include("portal.dashboard.old_addresses")),
    path("", include(home_urls.team_urlpatterns)),
]

handler400 = "portal.api.border.bad_request"
handler500 = "portal.api.border.server_error"
