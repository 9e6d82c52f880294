"""Live deployments that serve a quarantined version: what a changed scan verdict, or a release that ended,
touches.

A deployment is not stopped by a quarantine: people decide, from this list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.models import Deployment, ModelVersion
from deployments.registry.domain.scanning import verdicts
from deployments.registry.domain.scanning.verdicts import ScanReport
from deployments.registry.selectors import versions
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.policy import Actor

MAX_ROWS: Final = 500


@dataclass(frozen=True, slots=True)
class QuarantinedUse:
    version: ModelVersion
    deployment: Deployment

    @property
    def scan(self) -> ScanReport | None:
        return verdicts.from_json(self.version.scan)


def list_uses(*, actor: Actor) -> list[QuarantinedUse]:
    """List the uses by version, the newest first: at most MAX_ROWS, of the teams that the actor may see."""
    # Only a version that was ready once can be served.
    rows = ModelVersion.objects.select_related("model__team").filter(
        model__team__in=policy.visible_teams(actor),
        state=VersionState.QUARANTINED,
        ready_at__isnull=False,
        discarded_at__isnull=True,
    )
    quarantined = {
        version.pk: version
        for version in rows.defer("signature", "config_pbtxt", "readme").order_by("-pk")
    }
    serving = versions.deployments_serving(quarantined)
    uses = [
        QuarantinedUse(version, deployment)
        for pk, version in quarantined.items()
        for deployment in serving.get(pk, ())
    ]
    return uses[:MAX_ROWS]
