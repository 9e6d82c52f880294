"""The second way to a cluster: a commit that a GitOps operator (Argo CD, Flux) applies.

What the cluster shows is still read from the cluster. So a commit is never taken for a success:
after it the deployment waits, and the next look finds what the operator made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction

from deployments.delivery.domain import git_folder
from deployments.delivery.gateways import git
from deployments.delivery.gateways.git import Committed, GitError, Remote
from deployments.delivery.services import git_credentials
from deployments.delivery.services.commit_messages import message_of
from deployments.manifests.domain.metadata import Manifest, digest_of
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, GitDelivery, GitExport, Revision
from deployments.serving.services import timeline
from portal.accounts.policy import SYSTEM
from portal.core import clock

# Git is read again after this long without the cluster following; the operator may be slow.
_VERIFY_AFTER = timedelta(minutes=5)
# A repository that failed is left alone for a moment, or each deployment would wait for it.
_REST = timedelta(seconds=15)
_SETTLED: Final = "in sync"


@dataclass(frozen=True, slots=True)
class CommitResult:
    """It is in Git as `sha`, for an operator to apply; or not, and `problem` says why."""

    sha: str = ""
    problem: str = ""


class GitBackend:
    """One deployment of a team that delivers by commits."""

    def __init__(self, delivery: GitDelivery, deployment: Deployment) -> None:
        self._delivery = delivery
        self._deployment = deployment

    def push_revision(self, revision: Revision, manifests: Sequence[Manifest]) -> CommitResult:
        change = git_folder.push(self._deployment.name, manifests)
        return self._commit(f"push r{revision.number}", list(manifests), change)

    def push_route(self) -> CommitResult:
        route = rendering.route_of(self._deployment)
        return self._commit("route", [route], git_folder.push(self._deployment.name, [route]))

    def remove_route(self) -> CommitResult:
        return self._commit("remove route", [], git_folder.remove_route(self._deployment.name))

    def remove_revision(self, number: int) -> CommitResult:
        change = git_folder.remove_revision(self._deployment.name, number)
        return self._commit(f"remove r{number}", [], change)

    def settle(self, manifests: Sequence[Manifest]) -> CommitResult:
        """Git holds just this, also when the team only now began to deliver through it."""
        change = git_folder.exactly(self._deployment.name, manifests)
        return self._commit(_SETTLED, list(manifests), change)

    def _commit(self, step: str, wanted: list[Manifest], change: git_folder.Change) -> CommitResult:
        digest = self._digest(wanted)
        export = GitExport.objects.filter(deployment=self._deployment).first()
        if export is not None and _is_done(export, step, digest):
            return CommitResult(export.commit)
        if self._is_resting():
            return CommitResult(problem=self._delivery.last_error)
        try:
            made = self._push(step, change)
        except GitError as error:
            self._note_problem(error)
            return CommitResult(problem=error.message)
        self._record(step, digest, made, export)
        return CommitResult(made.sha)

    def _push(self, step: str, change: git_folder.Change) -> Committed:
        delivery, deployment = self._delivery, self._deployment
        return git.commit(
            remote_of(delivery),
            folder=git_folder.folder_of(
                delivery.path, cluster=deployment.cluster.name, namespace=deployment.namespace
            ),
            change=change,
            message=message_of(deployment, step),
            at=clock.now(),
        )

    def _digest(self, wanted: list[Manifest]) -> str:
        """Of what is wanted and where: another branch begins anew."""
        delivery = self._delivery
        place = [delivery.repository_url, delivery.branch, delivery.path]
        return digest_of({"place": place, "wanted": wanted})

    def _is_resting(self) -> bool:
        failed_at = self._delivery.last_error_at
        return failed_at is not None and clock.now() - failed_at < _REST

    def _note_problem(self, error: GitError) -> None:
        delivery, at = self._delivery, clock.now()
        words = f"Git: {error.message}"
        with transaction.atomic():
            if delivery.last_error != words:
                timeline.note(
                    deployment=self._deployment, kind="not committed", message=words, actor=SYSTEM
                )
            GitDelivery.objects.filter(pk=delivery.pk).update(last_error=words, last_error_at=at)
        delivery.last_error, delivery.last_error_at = words, at

    def _record(self, step: str, digest: str, made: Committed, before: GitExport | None) -> None:
        delivery = self._delivery
        with transaction.atomic():
            GitExport.objects.update_or_create(
                deployment=self._deployment,
                defaults={
                    "step": step,
                    "digest": digest,
                    "commit": made.sha,
                    "verified_at": clock.now(),
                },
            )
            if made.is_new or before is None or before.commit != made.sha:
                where = f"{delivery.branch} of {delivery.repository_url}"
                words = f"{step}: {where} holds it since {made.sha[:8]}"
                timeline.note(
                    deployment=self._deployment, kind="committed", message=words, actor=SYSTEM
                )
            if delivery.last_error:
                GitDelivery.objects.filter(pk=delivery.pk).update(last_error="", last_error_at=None)
        delivery.last_error, delivery.last_error_at = "", None


def _is_done(export: GitExport, step: str, digest: str) -> bool:
    if (export.step, export.digest) != (step, digest):
        return False
    return step == _SETTLED or clock.now() - export.verified_at < _VERIFY_AFTER


def backend_for(deployment: Deployment) -> GitBackend | None:
    """None: the cluster itself, by server-side apply."""
    return backends_for([deployment]).get(deployment.pk)


def backends_for(deployments: Sequence[Deployment]) -> dict[int, GitBackend]:
    """By deployment, of those whose team delivers through Git."""
    teams = {deployment.team_id for deployment in deployments}
    rows = GitDelivery.objects.filter(team__in=teams, is_enabled=True)
    by_team = {row.team_id: row for row in rows}
    return {
        one.pk: GitBackend(by_team[one.team_id], one)
        for one in deployments
        if one.team_id in by_team
    }


def remote_of(delivery: GitDelivery) -> Remote:
    return Remote(
        delivery.repository_url,
        delivery.branch,
        delivery.username,
        git_credentials.token_of(delivery.credential),
    )
