"""The API of account, tokens and teams."""

from __future__ import annotations

from django.urls import URLPattern, path

from portal.api import audit, views
from portal.api.teams import delegations, service_accounts

urlpatterns: list[URLPattern] = [
    path("audit", audit.AuditView.as_view(), name="audit"),
    path("me", views.MeView.as_view(), name="me"),
    path("me/tokens", views.TokensView.as_view(), name="tokens"),
    path("me/tokens/<int:token_id>", views.TokenView.as_view(), name="token"),
    path("teams", views.TeamsView.as_view(), name="teams"),
    path("teams/<slug:slug>", views.TeamView.as_view(), name="team"),
    path("teams/<slug:slug>/members", views.MembersView.as_view(), name="members"),
    path(
        "teams/<slug:slug>/members/<str:username>", views.MemberView.as_view(), name="team-member"
    ),
    path(
        "teams/<slug:slug>/service-accounts",
        service_accounts.ServiceAccountsView.as_view(),
        name="service-accounts",
    ),
    path(
        "teams/<slug:slug>/service-accounts/<str:account>",
        service_accounts.ServiceAccountView.as_view(),
        name="service-account",
    ),
    path(
        "teams/<slug:slug>/service-accounts/<str:account>/rotate",
        service_accounts.RotationView.as_view(),
        name="rotate-service-account",
    ),
    path(
        "teams/<slug:slug>/delegations", delegations.DelegationsView.as_view(), name="delegations"
    ),
    path(
        "teams/<slug:slug>/delegations/<int:delegation_id>",
        delegations.DelegationView.as_view(),
        name="delegation",
    ),
]
