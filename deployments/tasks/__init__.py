"""Celery tasks: each finds its work in rows, so it may run twice, late, or never."""

from deployments.tasks import artifacts, delivery

__all__ = ["artifacts", "delivery"]
