"""Rows of the local half of sign-in. They name people and teams by string, so that
portal.accounts.models can import them.
"""

from __future__ import annotations

from django.db import models

from portal.core import clock
from portal.core.leases import Leased


class AccountLink(Leased):
    """A single-use link. The token is derived from the nonce and the secret key; its SHA-256 finds the row.

    `next_check_at` is when its mail is due; empty: there is none to send.
    """

    nonce = models.CharField(max_length=64)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(
        "accounts.User", on_delete=models.CASCADE, related_name="+", null=True
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)
    mail_outcome = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        abstract = True
        ordering = ["-id"]

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= clock.now()


class Invitation(AccountLink):
    """Lets somebody without an account make one in a team."""

    name = models.CharField(max_length=150)
    email = models.EmailField(max_length=254)
    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10)
    used_by = models.ForeignKey(
        "accounts.User", on_delete=models.SET_NULL, related_name="+", null=True
    )

    class Meta(AccountLink.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["team", "email"],
                condition=models.Q(used_at=None, revoked_at=None),
                name="one_open_invitation",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.team_id}"
