"""Rows of SCIM provisioning. They name people by string, so that portal.accounts.models can import them."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models.functions import Lower


class ScimToken(models.Model):
    """A token that lets an identity provider provision people. It is shown once; only its SHA-256 is stored."""

    # The provider's name in the settings.
    provider = models.CharField(max_length=40)
    prefix = models.CharField(max_length=16)
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey("accounts.User", on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    # When the platform admins were told of it.
    announced_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.provider}"


class ProvisionedPerson(models.Model):
    """A person as a provider's SCIM client knows them. The account stays when this row is deleted there."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    provider = models.CharField(max_length=40)
    user = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="provisioned")
    user_name = models.CharField(max_length=254)
    # The provider's own identifier; sign-in finds the person by it.
    external_id = models.CharField(max_length=255, blank=True, default="")
    # What the provider last said. An account that an admin deactivated here stays deactivated.
    is_active = models.BooleanField(default=True)
    # Groups made the person a platform admin, so groups take it back.
    gives_platform_admin = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(
                "provider",
                Lower("user_name"),
                condition=models.Q(deleted_at=None),
                name="one_provisioned_person_per_name",
            ),
            models.UniqueConstraint(
                fields=["provider", "external_id"],
                condition=~models.Q(external_id=""),
                name="one_provisioned_person_per_external_id",
            ),
            models.UniqueConstraint(
                fields=["provider", "user"], name="one_provisioned_person_per_account"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_name} of {self.provider}"


class ProvisionedGroup(models.Model):
    """A group that a provider pushed. Rules turn its name or identifier into roles, as claims do."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    provider = models.CharField(max_length=40)
    display_name = models.CharField(max_length=255)
    external_id = models.CharField(max_length=255, blank=True, default="")
    members = models.ManyToManyField(ProvisionedPerson, related_name="groups")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(
                "provider", Lower("display_name"), name="one_provisioned_group_per_name"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.display_name} of {self.provider}"
