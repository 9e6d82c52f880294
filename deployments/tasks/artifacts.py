"""Verifying uploads and ending what takes too long."""

from __future__ import annotations

from celery import shared_task

from deployments.services import verification


@shared_task(name="deployments.verify_version", time_limit=1800)
def verify_version(version_id: int) -> None:
    verification.advance(version_id)


@shared_task(name="deployments.sweep_versions", time_limit=1800)
def sweep_versions() -> None:
    for version_id in verification.due():
        verification.advance(version_id)
