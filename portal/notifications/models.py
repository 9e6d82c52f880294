"""Channels, the outbox of notifications, and decision links."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.accounts.models import Team
from portal.core.leases import Leased


class ChannelKind(models.TextChoices):
    SLACK = "slack", "Slack"
    TEAMS = "teams", "Microsoft Teams"
    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"


class DeliveryState(models.TextChoices):
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
    # No longer applicable when it was due: the user left the team or the channel is off.
    DROPPED = "dropped"


class Channel(models.Model):
    """A channel of either a team or a user."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="channels")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="channels"
    )
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=10, choices=ChannelKind.choices)
    # The address is a secret: encrypted, see portal.notifications.vault.
    sealed_address = models.TextField()
    # The part that may be shown: a host, or an e-mail address.
    hint = models.CharField(max_length=254)
    # A list of codes of portal.notifications.events; empty means all.
    events = models.JSONField(default=list)
    is_on = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()
    # The result of the last message.
    last_at = models.DateTimeField(null=True)
    is_last_sent = models.BooleanField(null=True)
    last_outcome = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(team__isnull=True) ^ models.Q(user__isnull=True),
                name="channel_of_team_or_person",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Notice(models.Model):
    """The outbox: written in the transaction of the event, sent afterwards."""

    # Null: of the whole platform; then `data["people"]` names who gets it besides platform admins.
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="+")
    event = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    message = models.TextField()
    # Path of the page that the message links to.
    path = models.CharField(max_length=300)
    # Free-form, part of the digest; links.DecisionRequest reads and writes its key "decide".
    data = models.JSONField(default=dict)
    at = models.DateTimeField()
    # Digest of the fields above, to send equal notices once.
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["team", "digest", "at"])]

    def __str__(self) -> str:
        return self.subject


class Delivery(Leased):
    """The delivery of one notice to one channel."""

    notice = models.ForeignKey(Notice, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    state = models.CharField(
        max_length=8, choices=DeliveryState.choices, default=DeliveryState.WAITING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    deadline_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["notice", "channel"], name="one_delivery_per_channel")
        ]

    def __str__(self) -> str:
        return f"notice {self.notice_id} to channel {self.channel_id}: {self.state}"


class DecisionLink(models.Model):
    """A link that lets one user make one decision once. The token is in the message only; this row has its digest."""

    delivery = models.OneToOneField(Delivery, on_delete=models.CASCADE, related_name="link")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="decision_links"
    )
    # The kind of the subject, its id, and the step and evidence that the message showed.
    kind = models.CharField(max_length=10)
    object_id = models.BigIntegerField()
    step_index = models.PositiveSmallIntegerField(default=0)
    evidence_hash = models.CharField(max_length=64)
    # The token is derived from this and the portal's secret key, so that retries carry the same token.
    nonce = models.CharField(max_length=32)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    used_for = models.CharField(max_length=20, blank=True, default="")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"link {self.pk} of {self.kind} {self.object_id}"
