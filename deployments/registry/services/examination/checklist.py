"""The live checklist of a verification, written to the row after every step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.db.models import QuerySet

from deployments.models import ModelVersion
from deployments.registry.domain.verification_steps import VerificationStep
from deployments.states import VersionState
from portal.core import clock, leases
from portal.core.leases import Lease

LEASE_SECONDS: Final = 120
_RENEW_EVERY: Final = timedelta(seconds=20)

STEPS: Final = (
    "Size",
    "Format",
    "Digest",
    "Scan",
    "Inputs and outputs",
    "Runtime",
    "Batching",
    "GPU memory",
    "Serving repository",
    "Load test",
)


class LeaseLost(Exception):
    """The lease was lost: another worker claimed the row, or the verification was stopped. End without writing."""


class Checklist:
    """The checklist of a verification. It holds the lease as long as steps are reported."""

    def __init__(
        self, version_id: int, lease: Lease, earlier: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Start a checklist. `earlier` are the steps of a pass that waits for its last one."""
        self.lease = lease
        self._version_id = version_id
        self._renewed_at = clock.now()
        self.steps = [VerificationStep(name) for name in STEPS]
        for step in earlier:
            self._set(step["name"], ok=step["ok"], detail=step["detail"])

    def running(self, name: str, detail: str) -> None:
        self._set(name, ok=None, detail=detail)
        self._write()

    def pass_step(self, name: str, detail: str) -> None:
        self._set(name, ok=True, detail=detail)
        self._write()

    def refuse_step(self, name: str, detail: str) -> None:
        """Mark the step as failed and all later steps as not tried."""
        self._set(name, ok=False, detail=detail)
        for step in self.steps:
            if step.ok is None:
                step.detail = "not tried"
        self._write()

    def warn_step(self, name: str, detail: str) -> None:
        """Mark the step as failed; later steps still run."""
        self._set(name, ok=False, detail=detail)
        self._write()

    def not_tried(self, name: str, reason: str) -> None:
        """Mark a step as neither passed nor failed, because it was not tried. Later steps still run."""
        self._set(name, ok=None, detail=f"not tried: {reason}")
        self._write()

    def inconclusive(self, name: str, detail: str) -> None:
        """Mark a step as tried, but neither passed nor failed. Later steps still run."""
        self._set(name, ok=None, detail=detail)
        self._write()

    def keep_alive(self) -> None:
        """Renew the lease when it is due. Call often during long work. Raises LeaseLost."""
        if clock.now() - self._renewed_at > _RENEW_EVERY:
            self._renew()

    def keep_alive_unless_stopped(self) -> None:
        """Keep the lease as keep_alive does. Also raises LeaseLost if the verification was stopped."""
        if not self._row().exists():
            raise LeaseLost
        self.keep_alive()

    def to_json(self) -> list[dict[str, object]]:
        return [step.to_json() for step in self.steps]

    def _set(self, name: str, *, ok: bool | None, detail: str) -> None:
        step = self.steps[STEPS.index(name)]
        step.ok, step.detail = ok, detail

    def _write(self) -> None:
        self._renew()
        if self._row().update(checks=self.to_json()) == 0:
            raise LeaseLost

    def _row(self) -> QuerySet[ModelVersion]:
        return ModelVersion.objects.filter(
            pk=self._version_id, lease_token=self.lease.token, state=VersionState.VERIFYING
        )

    def _renew(self) -> None:
        renewed = leases.renew(ModelVersion, self.lease, seconds=LEASE_SECONDS)
        if renewed is None:
            raise LeaseLost
        self.lease, self._renewed_at = renewed, clock.now()
