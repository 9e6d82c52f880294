"""URLs of the local half of sign-in: invitations, passwords, sessions, second factors."""

from __future__ import annotations

from django.urls import path

from portal.dashboard.accounts import (
    confirm,
    invitation,
    invitations,
    passkeys,
    password_links,
    second_factors,
    security,
)

urlpatterns = [
    path("confirm", confirm.confirm, name="confirm"),
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
    path("sign-in/forgotten", password_links.request_password_link, name="forgotten"),
    path("password-link/<str:token>", password_links.open_link, name="password-link-open"),
    path("password-link", password_links.choose, name="password-link"),
    path(
        "admin/people/<str:username>/password-link",
        password_links.make,
        name="admin-person-password",
    ),
    path("account/security", security.security_page, name="security"),
    path("account/password", security.change_password, name="password"),
    path("account/sessions/end-others", security.end_other_sessions, name="sessions-end-others"),
    path("account/sessions/<slug:name>/end", security.end_session, name="session-end"),
    path("account/second-factor/passkeys", passkeys.passkey_list, name="passkeys"),
    path("account/second-factor/passkeys/begin", passkeys.begin, name="passkey-begin"),
    path("account/second-factor/passkeys/remove", passkeys.remove, name="passkey-remove"),
    path("account/second-factor", second_factors.set_up, name="second-factor"),
    path("account/second-factor/start", second_factors.start, name="second-factor-start"),
    path("account/second-factor/codes", second_factors.make_codes, name="recovery-codes"),
    path("account/second-factor/remove", second_factors.remove, name="second-factor-remove"),
    path(
        "admin/people/<str:username>/second-factor/remove",
        second_factors.remove_of_person,
        name="admin-person-factor-remove",
    ),
]
