"""Where people are told, what they were told, and the links that let them answer."""

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
    # Not wanted any more when its turn came: the person has left the team, the channel is off.
    DROPPED = "dropped"


class Channel(models.Model):
    """Of a team or of a person, never both."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="channels")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="channels"
    )
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=10, choices=ChannelKind.choices)
    # The address is a secret: encrypted, see portal.notifications.vault.
    sealed_address = models.TextField()
    # What may be shown of it: a host, or an e-mail address.
    hint = models.CharField(max_length=254)
    # Codes of portal.notifications.events; empty means all.
    events = models.JSONField(default=list)
    is_on = models.BooleanField(default=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField()
    # Of the last message that ended, well or badly.
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
    """The outbox: written in the transaction of what it tells of, sent afterwards."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    event = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    message = models.TextField()
    # Address of the page, without host.
    path = models.CharField(max_length=300)
    data = models.JSONField(default=dict)
    at = models.DateTimeField()
    # Of all the above: the same thing is told once.
    digest = models.CharField(max_length=64)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["team", "digest", "at"])]

    def __str__(self) -> str:
        return self.subject


class Delivery(Leased):
    """One notice on its way to one channel."""

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
    """Lets one person answer one question once. Its token is in the message only; here is a digest."""

    delivery = models.OneToOneField(Delivery, on_delete=models.CASCADE, related_name="link")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="decision_links"
    )
    # What is decided: "rollout" or "change", its number, the step and the evidence that were shown.
    kind = models.CharField(max_length=10)
    object_id = models.BigIntegerField()
    step_index = models.PositiveSmallIntegerField(default=0)
    evidence_hash = models.CharField(max_length=64)
    # The token is made from this and the portal's secret key, so that a second attempt to send
    # carries the same one.
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
