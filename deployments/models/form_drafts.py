"""Forms of new deployments that were not sent yet, each of one person in one team."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from portal.accounts.models import Team


class FormDraft(models.Model):
    """The form of a new deployment as its author left it. Nobody else sees it."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="form_drafts"
    )
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="form_drafts")
    # Made when the form is opened, so that each tab has its own.
    key = models.CharField(max_length=32)
    # The form's texts that differ from their defaults and suggestions, without those that may hold a secret.
    fields = models.JSONField(default=dict)
    # Names of the fields that had a text which is not stored.
    left_out = models.JSONField(default=list)
    # Names the version even after it was deleted.
    version_label = models.CharField(max_length=200, blank=True, default="")
    changed_at = models.DateTimeField()
    # A save that was on its way when the request was sent must not bring the draft back.
    sent_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-changed_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="one_form_draft_per_key")
        ]
        indexes = [models.Index(fields=["changed_at"], name="form_draft_age")]

    def __str__(self) -> str:
        return self.version_label or "draft"
