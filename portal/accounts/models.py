"""Users, teams and the users' roles in them."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as DjangoUserManager
from django.core.validators import RegexValidator
from django.db import models

from portal.accounts.local import models as _local_models  # noqa: F401  for its tables
from portal.accounts.scim.models import ProvisionedGroup, ProvisionedPerson, ScimToken
from portal.accounts.scopes import TokenGrant
from portal.core import clock
from portal.core.leases import Leased

__all__ = [
    "AccountHolder",
    "ApiToken",
    "Delegation",
    "DismissedItem",
    "Identity",
    "Membership",
    "ProvisionedGroup",
    "ProvisionedPerson",
    "Role",
    "ScimToken",
    "Team",
    "User",
    "UserManager",
]
# Longer than a request waits for its approvals.
HELD_FOR = timedelta(days=30)
SLUG = r"^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$"


class UserManager(DjangoUserManager["User"]):
    # A migration that names the manager would fix its import path.
    use_in_migrations = False

    def create_superuser(
        self,
        username: str,
        email: str | None = None,
        password: str | None = None,
        **extra_fields: Any,
    ) -> User:
        """`manage.py createsuperuser` creates the first platform admin."""
        extra_fields.setdefault("is_platform_admin", True)
        return super().create_superuser(username, email, password, **extra_fields)


class User(AbstractUser):
    objects: ClassVar[UserManager] = UserManager()

    is_platform_admin = models.BooleanField(default=False)
    # Chosen with the theme switch; empty follows the system.
    theme = models.CharField(max_length=5, blank=True, default="")
    # The team whose page was opened last: signing in returns to it.
    last_team = models.ForeignKey(
        "Team", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    # A service account belongs to one team and never signs in; None: a person.
    service_team = models.ForeignKey(
        "Team", on_delete=models.CASCADE, null=True, blank=True, related_name="service_accounts"
    )

    # Set for the request that an API token makes.
    grant: TokenGrant | None = None
    # When the sender of a request last showed who they are; no column. None: not known.
    authenticated_at: datetime | None = None

    class Meta(AbstractUser.Meta):
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(service_team=None) | models.Q(is_platform_admin=False),
                name="service_account_is_no_admin",
            )
        ]

    @property
    def is_service_account(self) -> bool:
        return self.service_team_id is not None

    @property
    def display_name(self) -> str:
        return self.get_full_name() or self.username


class Role(models.TextChoices):
    VIEWER = "viewer"
    MEMBER = "member"
    LEAD = "lead"


class Team(models.Model):
    """A team, which owns models, deployments, budget and quota. Its slug is its namespace on every cluster."""

    slug = models.CharField(max_length=32, unique=True, validators=[RegexValidator(SLUG)])
    name = models.CharField(max_length=80)
    quota_gpus = models.PositiveIntegerField(default=4)
    monthly_budget_amount = models.DecimalField(
        max_digits=12, decimal_places=2, default=Decimal("0.00")
    )
    # A request that would exceed the budget in a full month is refused, instead of left to the approver.
    is_budget_binding = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    # The OIDC provider whose claims gave the role; empty: a person gave it.
    provider = models.CharField(max_length=40, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "team"], name="one_membership_per_team"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="known_role"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} of {self.team_id}"


class AccountHolder(Leased):
    """A person who could be acting as an account, because they made what lets somebody into it.

    `next_check_at` is when its owner and the team's leads are to be told; empty: they were.
    """

    class Means(models.TextChoices):
        INVITATION = "invitation", "an invitation"
        PASSWORD_LINK = "password link", "a password link"
        SECOND_FACTOR = "second factor", "a removed second factor"
        PROVIDER = "provider", "a connected sign-in provider"
        SCIM = "scim", "a SCIM token"

    account = models.ForeignKey(User, on_delete=models.CASCADE, related_name="holders")
    holder = models.ForeignKey(User, on_delete=models.CASCADE, related_name="held_accounts")
    means = models.CharField(max_length=20, choices=Means.choices)
    # The last time: four eyes counts from it.
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "holder", "means"], name="one_holder_by_each_means"
            ),
        ]
        indexes = [models.Index(fields=["holder", "at"], name="held_accounts_at")]

    @property
    def ends_at(self) -> datetime:
        """The time when both count as two people again."""
        return self.at + HELD_FOR

    def __str__(self) -> str:
        return f"{self.holder_id} holds {self.account_id} by {self.means}"


class Identity(models.Model):
    """A person as an OIDC provider knows them: the issuer's subject, which never changes or is reused."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="identities")
    # The provider's name in the settings, for display.
    provider = models.CharField(max_length=40)
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    # Claims made the person a platform admin, so claims take it back.
    gives_platform_admin = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    signed_in_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["issuer", "subject"], name="one_person_per_subject"),
            models.UniqueConstraint(fields=["user", "issuer"], name="one_subject_per_person"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class Delegation(models.Model):
    """A delegation that lets a member approve for a lead during a period, while the lead keeps that role."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="delegations")
    lead = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    delegate = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    reason = models.CharField(max_length=300)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(ends_at__gt=models.F("starts_at")), name="delegation_has_length"
            ),
            models.CheckConstraint(
                condition=~models.Q(lead=models.F("delegate")), name="delegate_is_another"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.delegate_id} for {self.lead_id} in {self.team_id}"


class ApiToken(models.Model):
    """A token of a person or a service account, shown once. Only its SHA-256 is stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    # Words of `scopes.Scope`, separated by spaces.
    scopes = models.CharField(max_length=60, default="read")
    # The only team that the token acts on; None: all of its owner.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="+")
    # None: as many as the platform allows.
    requests_per_minute = models.PositiveIntegerField(null=True)
    # Who was shown the token of a service account; None: its owner.
    made_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.prefix}… {self.name}"

    @property
    def scope_names(self) -> list[str]:
        return self.scopes.split()

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= clock.now()


class DismissedItem(models.Model):
    """An item of the home page that a person dismissed. It is shown again once its facts are others."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="dismissed_items")
    # The name of the item, as "deployment 7".
    key = models.CharField(max_length=80)
    # A digest of what the item said when it was dismissed.
    facts = models.CharField(max_length=64, blank=True, default="")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="item_dismissed_once"),
        ]

    def __str__(self) -> str:
        return f"{self.key}, dismissed by {self.user_id}"
