"""The delivery backend for teams that deliver through Git: a GitOps operator (Argo CD, Flux)
applies each commit.

Observed state is still read from the cluster, so a commit does not count as success: the deployment
waits, and the next reconcile pass observes what the operator applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db import transaction

from deployments.delivery.domain import git_folder
from deployments.delivery.gateways import git
from deployments.delivery.gateways.git import GitCommit, GitError, Remote
from deployments.delivery.services import git_credentials, git_identity
from deployments.delivery.services.commit_messages import message_of
from deployments.manifests.domain.metadata import Manifest
from deployments.models import Deployment, GitDelivery, GitExport, Pipeline, Revision
from deployments.serving.services import timeline
from deployments.spec.domain.digests import digest_of
from portal.accounts.policy import SYSTEM
from portal.core import clock

# Read the repository again when the cluster has not followed for this long.
_VERIFY_AFTER = timedelta(minutes=5)
# Pause after a failure of the repository, or each deployment would wait for its timeout.
_PAUSE = timedelta(seconds=15)
_IN_SYNC: Final = "in sync"


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The commit that holds the change, or the problem why there is none."""

    sha: str = ""
    problem: str = ""


class GitBackend:
    """The delivery of one deployment or pipeline of a team that delivers by commits."""

    def __init__(self, delivery: GitDelivery, subject: Deployment | Pipeline) -> None:
        self._delivery = delivery
        self._subject = subject

    def push_revision(self, revision: Revision, manifests: Sequence[Manifest]) -> CommitResult:
        return self.push(f"push r{revision.number}", manifests)

    def push_route(self, manifests: Sequence[Manifest]) -> CommitResult:
        """Commit the route with the policy of who may call it, if any."""
        return self.push("route", manifests)

    def push(self, step: str, manifests: Sequence[Manifest]) -> CommitResult:
        stamped = git_identity.stamp(self._subject, manifests)
        change = git_folder.push(self._subject.name, stamped)
        return self._commit(step, stamped, change)

    def remove_route(self) -> CommitResult:
        return self._commit("remove route", [], git_folder.remove_route(self._subject.name))

    def remove_revision(self, number: int) -> CommitResult:
        change = git_folder.remove_revision(self._subject.name, number)
        return self._commit(f"remove r{number}", [], change)

    def sync(self, manifests: Sequence[Manifest]) -> CommitResult:
        """Make the repository hold just these manifests, also after a team has switched to delivery through Git."""
        stamped = git_identity.stamp(self._subject, manifests)
        change = git_folder.exactly(self._subject.name, stamped)
        return self._commit(_IN_SYNC, stamped, change)

    def _commit(
        self, step: str, manifests: list[Manifest], change: git_folder.Change
    ) -> CommitResult:
        digest = self._digest(manifests)
        export = GitExport.objects.filter(**self._key).first()
        if export is not None and _is_done(export, step, digest):
            return CommitResult(export.commit)
        if self._is_paused():
            return CommitResult(problem=self._delivery.last_error)
        if problem := git_identity.problem_of(self._subject):
            return CommitResult(problem=problem)
        try:
            committed = self._push(step, change)
        except GitError as error:
            self._note_problem(error)
            return CommitResult(problem=error.message)
        self._record(step, digest, committed, export)
        return CommitResult(committed.sha)

    def _push(self, step: str, change: git_folder.Change) -> GitCommit:
        delivery, subject = self._delivery, self._subject
        return git.commit(
            remote_of(delivery),
            folder=git_folder.folder_of(
                delivery.path, cluster=subject.cluster.name, namespace=subject.namespace
            ),
            change=change,
            message=message_of(subject, step),
            at=clock.now(),
        )

    def _digest(self, manifests: list[Manifest]) -> str:
        """Return the digest of manifests and target: another branch or folder needs a commit of its own."""
        delivery = self._delivery
        target = [delivery.repository_url, delivery.branch, delivery.path]
        return digest_of({"target": target, "manifests": manifests})

    def _is_paused(self) -> bool:
        failed_at = self._delivery.last_error_at
        return failed_at is not None and clock.now() - failed_at < _PAUSE

    @property
    def _key(self) -> dict[str, Any]:
        is_pipeline = isinstance(self._subject, Pipeline)
        return {"pipeline" if is_pipeline else "deployment": self._subject}

    def _note(self, kind: str, message: str) -> None:
        """Add a line to the deployment's timeline. A pipeline has none."""
        if isinstance(self._subject, Deployment):
            timeline.note(deployment=self._subject, kind=kind, message=message, actor=SYSTEM)

    def _note_problem(self, error: GitError) -> None:
        delivery, at = self._delivery, clock.now()
        message = f"Git: {error.message}"
        with transaction.atomic():
            if delivery.last_error != message:
                self._note("not committed", message)
            GitDelivery.objects.filter(pk=delivery.pk).update(last_error=message, last_error_at=at)
        delivery.last_error, delivery.last_error_at = message, at

    def _record(
        self, step: str, digest: str, committed: GitCommit, before: GitExport | None
    ) -> None:
        delivery = self._delivery
        with transaction.atomic():
            GitExport.objects.update_or_create(
                **self._key,
                defaults={
                    "step": step,
                    "digest": digest,
                    "commit": committed.sha,
                    "verified_at": clock.now(),
                },
            )
            if committed.is_new or before is None or before.commit != committed.sha:
                where = f"{delivery.branch} of {delivery.repository_url}"
                message = f"{step}: {where} holds it since {committed.sha[:8]}"
                self._note("committed", message)
            if delivery.last_error:
                GitDelivery.objects.filter(pk=delivery.pk).update(last_error="", last_error_at=None)
        delivery.last_error, delivery.last_error_at = "", None


def _is_done(export: GitExport, step: str, digest: str) -> bool:
    if (export.step, export.digest) != (step, digest):
        return False
    return step == _IN_SYNC or clock.now() - export.verified_at < _VERIFY_AFTER


def backend_for(deployment: Deployment) -> GitBackend | None:
    """Return the Git backend of the deployment. None if the portal applies changes directly to the cluster."""
    return backends_for([deployment]).get(deployment.pk)


def backends_for(deployments: Sequence[Deployment]) -> dict[int, GitBackend]:
    """Return the Git backends by deployment, for teams that deliver through Git."""
    teams = {deployment.team_id for deployment in deployments}
    enabled = GitDelivery.objects.filter(team__in=teams, is_enabled=True)
    by_team = {row.team_id: row for row in enabled}
    return {
        deployment.pk: GitBackend(by_team[deployment.team_id], deployment)
        for deployment in deployments
        if deployment.team_id in by_team
    }


def backend_for_pipeline(pipeline: Pipeline) -> GitBackend | None:
    """Return the Git backend of the pipeline. None if the portal applies changes directly to the cluster."""
    delivery = GitDelivery.objects.filter(team=pipeline.team_id, is_enabled=True).first()
    return None if delivery is None else GitBackend(delivery, pipeline)


def remote_of(delivery: GitDelivery) -> Remote:
    return Remote(
        delivery.repository_url,
        delivery.branch,
        delivery.username,
        git_credentials.token_of(delivery.credential),
    )
