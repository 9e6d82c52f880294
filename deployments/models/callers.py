"""Callers of models, and their keys for deployments."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.deployments import Deployment
from deployments.states import ConsumerKind
from portal.accounts.models import Team


class Consumer(models.Model):
    """A person or program that calls models of a team. It cannot sign in."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="consumers")
    name = models.CharField(max_length=40)
    kind = models.CharField(max_length=7, choices=[(k.value, k.value) for k in ConsumerKind])
    # Who to contact before a key ends.
    contact = models.CharField(max_length=200)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="one_consumer_per_name")
        ]

    def __str__(self) -> str:
        return f"{self.team.slug}/{self.name}"


class TokenIssuer(models.Model):
    """An identity provider whose JWTs gateways accept. Never changed: removed and added under another name, so
    that what was approved stays what it was.
    """

    name = models.CharField(max_length=40, unique=True)
    # Null: for all clusters.
    cluster = models.ForeignKey(
        "fleet.Cluster", on_delete=models.PROTECT, null=True, related_name="+"
    )
    # What its tokens have as `iss`.
    url = models.CharField(max_length=253)
    jwks_url = models.CharField(max_length=253)
    audiences = models.JSONField()
    # The claim that names the caller.
    claim = models.CharField(max_length=100, default="sub")
    # deployments.access.domain.callers.RequiredClaim
    required_claims = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class SigningKey(models.Model):
    """The key that signs the keys of callers where the gateway checks signatures. Its public half is published
    while a key that it signed is open.
    """

    kid = models.CharField(max_length=43, unique=True)
    # What the tokens name as their issuer, and the gateways expect.
    issuer = models.CharField(max_length=200)
    public_jwk = models.JSONField()
    # The encrypted private half; erased when the next one takes over.
    sealed = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.kid


class CallerKey(models.Model):
    """A consumer's key for one deployment, or the claim by which its tokens name it. It works until `ends_at`,
    or until `ended_at` if that came first.
    """

    consumer = models.ForeignKey(Consumer, on_delete=models.PROTECT, related_name="keys")
    deployment = models.ForeignKey(Deployment, on_delete=models.PROTECT, related_name="caller_keys")
    # What people tell keys apart by: the first characters, of a signed key the last.
    prefix = models.CharField(max_length=12)
    sha256 = models.CharField(max_length=64, unique=True)
    # Encrypted for the gateway, which needs the key itself; erased when the key ends.
    sealed = models.TextField(blank=True, default="")
    # Null: a random text, which the gateway compares; else a signed token, which it verifies.
    signing_key = models.ForeignKey(SigningKey, null=True, on_delete=models.PROTECT)
    # Null: a key. Else tokens of the issuer whose claim has this value.
    token_issuer = models.ForeignKey(TokenIssuer, null=True, on_delete=models.PROTECT)
    # Null: a caller's own. Else the one that the gateway puts on the requests of a pipeline.
    pipeline_key = models.ForeignKey(
        "deployments.PipelineKey", null=True, on_delete=models.PROTECT, related_name="rows"
    )
    claim_value = models.CharField(max_length=200, blank=True, default="", db_default="")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT)
    created_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    # Null: the gateway counts nothing for it.
    requests_per_minute = models.PositiveIntegerField(null=True)
    # Null: no limit.
    tokens_per_minute = models.PositiveIntegerField(null=True)
    tokens_per_day = models.PositiveBigIntegerField(null=True)
    # It used too many tokens: the gateway answers 429 until then.
    paused_until = models.DateTimeField(null=True)
    rotated_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    is_revoked = models.BooleanField(default=False)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["ends_at"],
                condition=models.Q(ended_at__isnull=True),
                name="caller_keys_to_end",
            ),
            models.Index(
                fields=["paused_until"],
                condition=models.Q(paused_until__isnull=False),
                name="caller_keys_to_resume",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "token_issuer", "claim_value"],
                condition=models.Q(ended_at__isnull=True, token_issuer__isnull=False),
                name="one_open_caller_of_a_claim",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.hint} of {self.consumer.name}"

    @property
    def hint(self) -> str:
        """The recognisable part of a key: `slc_Ab12…`, or `…Ab12xyz` of a signed key, whose first characters
        are those of all; the value of the claim, of tokens.
        """
        if self.token_issuer_id is not None:
            return self.claim_value
        return self.prefix if self.prefix.startswith("…") else f"{self.prefix}…"

    @property
    def client(self) -> str:
        """The name by which the gateway, models and their logs know the caller. It needs the consumer's row."""
        return self.claim_value or f"{self.consumer.name}.{self.pk}"

    @property
    def team(self) -> Team:
        return self.deployment.team


class KeyTokens(models.Model):
    """The tokens that a key used in the minute and the day of its last reading."""

    key = models.OneToOneField(CallerKey, on_delete=models.CASCADE, related_name="tokens")
    minute = models.DateTimeField()
    # With what earlier minutes used above the limit.
    minute_tokens = models.PositiveBigIntegerField(default=0)
    day = models.DateTimeField()
    day_tokens = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.key_id}: {self.day_tokens}"


class KeysAtGateway(models.Model):
    """The state of the callers' keys and limits at the gateway of a deployment."""

    deployment = models.OneToOneField(
        Deployment, on_delete=models.CASCADE, related_name="keys_at_gateway"
    )
    # Of the last change of a key or a limit.
    changed_at = models.DateTimeField()
    # Of the keys that the cluster took last; 0: none yet.
    written_generation = models.PositiveIntegerField(default=0)
    written_at = models.DateTimeField(null=True)
    # Why the cluster refused them, in its own words; empty where it did not.
    problem = models.TextField(blank=True, default="")
    # Whether callers are checked as stated, and only limits were refused.
    is_limit = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "keys at gateway"

    def __str__(self) -> str:
        return f"{self.deployment_id}: {self.written_generation}"
