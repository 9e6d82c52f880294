"""Tasks of the audit trail. Each finds its work in rows, so it may run twice, late, or never."""

from __future__ import annotations

from celery import shared_task

from portal.audit import daily, sealing, streaming


@shared_task(name="audit.seal", time_limit=300)
def seal() -> None:
    sealing.seal()


@shared_task(name="audit.anchor", time_limit=600)
def anchor() -> None:
    daily.run()


@shared_task(name="audit.stream", time_limit=300)
def stream() -> None:
    streaming.run()
