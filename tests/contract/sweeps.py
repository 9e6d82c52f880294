"""The workers' sweeps, run here until real processes have reached a state."""

from __future__ import annotations

import time
from collections.abc import Callable

from deployments.delivery.services import reconcile
from deployments.lifecycle.services import apply_changes
from deployments.models import Deployment, Rollout
from deployments.quality.services import golden_runs
from deployments.rollouts.services import reconcile as rollout_reconcile
from portal.core import clock
from tests.waiting import PATIENCE_SECONDS, pause


def until(done: Callable[[], bool], why: Callable[[], str]) -> None:
    """Run the sweeps until the condition is met."""
    end = time.monotonic() + PATIENCE_SECONDS
    while (began := time.monotonic()) < end:
        Deployment.objects.filter(is_retired=False).exclude(stable_revision=None).update(
            next_check_at=clock.now()
        )
        Rollout.objects.exclude(phase__in=["completed", "aborted"]).update(
            next_check_at=clock.now()
        )
        apply_changes.sweep()
        reconcile.sweep()
        if golden_runs.has_work():
            golden_runs.sweep()
        rollout_reconcile.sweep()
        if done():
            return
        pause(began)
    raise AssertionError(why())
