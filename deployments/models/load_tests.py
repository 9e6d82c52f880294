"""Load tests on clusters: where a team's run, and those that run now."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from deployments.models.registry import ModelVersion
from portal.accounts.models import Team


class LoadTestPlace(models.Model):
    """The place where load tests of a team run. Without a row, its versions are loaded on the worker's machine,
    if at all. Edited in place.
    """

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="load_test_place")
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.CASCADE, related_name="+")
    # deployments.load_tests.domain.choice.PodChoice
    pod = models.JSONField(default=dict)
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    set_at = models.DateTimeField()

    class Meta:
        ordering = ["team"]

    def __str__(self) -> str:
        return f"{self.team}: load tests on {self.cluster}"


class LoadTestRun(models.Model):
    """The load test that the verification of a version waits for; deleted with its result.

    `until` is the version's deadline when it began: another verification has another one. `result` is set
    once, before the Job is removed.
    """

    version = models.OneToOneField(
        ModelVersion, on_delete=models.CASCADE, related_name="load_test_run"
    )
    cluster = models.ForeignKey("fleet.Cluster", on_delete=models.CASCADE, related_name="+")
    namespace = models.CharField(max_length=63)
    # Of the Job.
    name = models.CharField(max_length=63)
    # As in LoadTestPlace.
    pod = models.JSONField(default=dict)
    until = models.DateTimeField(null=True)
    # deployments.registry.domain.load_tests.examined_version.ExaminedVersion
    columns = models.JSONField(default=dict)
    # Why it is not over.
    detail = models.TextField(blank=True, default="")
    # deployments.registry.domain.load_tests.results.LoadTest
    result = models.JSONField(null=True)
    began_at = models.DateTimeField()
    # Written before the Job is.
    applied_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField()

    class Meta:
        ordering = ["began_at"]

    def __str__(self) -> str:
        return f"{self.version} on {self.cluster}"
