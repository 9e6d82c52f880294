"""URLs of the local half of sign-in: invitations, passwords, sessions, second factors."""

from __future__ import annotations

from django.urls import path

from portal.dashboard.accounts import invitation, invitations

urlpatterns = [
    path("invitation/<str:token>", invitation.open_link, name="invitation-open"),
    path("invitation", invitation.accept, name="invitation"),
    path("admin/invitations", invitations.invite, name="admin-invite"),
    path(
        "admin/invitations/<int:invitation_id>/revoke",
        invitations.revoke,
        name="invitation-revoke",
    ),
    path(
        "admin/teams/<str:slug>/invitations",
        invitations.invite_to_team,
        name="admin-team-invite",
    ),
]
