"""Delivery through Git: where a team's manifests are committed, and what was committed last."""

from __future__ import annotations

from django.db import models

from deployments.models.deployments import Deployment
from deployments.models.pipelines import Pipeline
from portal.accounts.models import Team


class GitDelivery(models.Model):
    """A team with a row that is enabled delivers by commits; a GitOps operator applies them.

    The credential itself is never stored: `credential` names a file in SLIPWAY_GIT_CREDENTIALS_DIR.
    """

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="git_delivery")
    is_enabled = models.BooleanField(default=True)
    repository_url = models.CharField(max_length=300)
    branch = models.CharField(max_length=100, default="main")
    # Folder inside the repository, without slashes at its ends; empty is the root.
    path = models.CharField(max_length=200, blank=True, default="")
    username = models.CharField(max_length=100, blank=True, default="")
    credential = models.CharField(max_length=100, blank=True, default="")
    last_error = models.TextField(blank=True, default="")
    last_error_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.repository_url} {self.branch}"


class GitExport(models.Model):
    """The last commit for a deployment or pipeline. A cache: losing it costs one fetch."""

    deployment = models.OneToOneField(
        Deployment, on_delete=models.CASCADE, null=True, related_name="git_export"
    )
    pipeline = models.OneToOneField(
        Pipeline, on_delete=models.CASCADE, null=True, related_name="git_export"
    )
    # Its step ("push r3", "route", …), and the digest of the manifests and the target branch.
    step = models.CharField(max_length=40, default="")
    digest = models.CharField(max_length=64, default="")
    commit = models.CharField(max_length=40)
    verified_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(deployment__isnull=False, pipeline=None)
                | models.Q(pipeline__isnull=False, deployment=None),
                name="one_subject_of_an_export",
            )
        ]

    def __str__(self) -> str:
        return f"{self.deployment_id or self.pipeline_id} {self.commit[:8]}"
