"""Rows of the local half of sign-in. They name people and teams by string, so that
portal.accounts.models can import them.
"""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.base_session import AbstractBaseSession
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
    """An invitation that lets somebody without an account make one in a team."""

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


class PasswordLink(AccountLink):
    """A link that lets a person choose a new password. Without `created_by` it was requested on the sign-in page."""

    user = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"{self.user_id}"


class BrowserSession(AbstractBaseSession):
    """A session that names its person, so that they are listed and ended without reading all of them."""

    user = models.ForeignKey(
        "accounts.User", on_delete=models.CASCADE, related_name="browser_sessions", null=True
    )
    began_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    address = models.CharField(max_length=64, blank=True, default="")
    user_agent = models.CharField(max_length=300, blank=True, default="")
    # How the person signed in: "password", or a provider's label.
    method = models.CharField(max_length=80, blank=True, default="")

    @classmethod
    def get_session_store_class(cls) -> type[SessionBase]:
        """Return the store of SESSION_ENGINE, which imports this model."""
        store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
        return store

    def __str__(self) -> str:
        """Represent the session without its key, with which anyone is signed in."""
        return f"session of {self.user_id}"


class Authenticator(models.Model):
    """An authenticator app of a person (TOTP). Until it is confirmed it counts for nothing."""

    user = models.OneToOneField(
        "accounts.User", on_delete=models.CASCADE, related_name="authenticator"
    )
    # Sealed with the secret key, and shown on no page once it is confirmed.
    sealed_key = models.TextField()
    created_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    # The time step of the last accepted code: no code is accepted twice.
    last_step = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"authenticator of {self.user_id}"


class Passkey(models.Model):
    """A WebAuthn credential of a person: its public key, and how often it has signed."""

    user = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="passkeys")
    name = models.CharField(max_length=60)
    # base64url, as browsers write it; up to 1023 bytes.
    credential_id = models.CharField(max_length=1400, unique=True)
    # fido2.webauthn.AttestedCredentialData as bytes.
    credential = models.BinaryField()
    sign_count = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"passkey of {self.user_id}"


class RecoveryCode(models.Model):
    """A code that signs in once in place of a code of the authenticator app. Only a keyed hash is stored."""

    user = models.ForeignKey(
        "accounts.User", on_delete=models.CASCADE, related_name="recovery_codes"
    )
    digest = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "digest"], name="one_recovery_code"),
        ]

    def __str__(self) -> str:
        return f"recovery code of {self.user_id}"
