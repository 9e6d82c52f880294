"""The identity of the portal in tests whose databases are rolled back while their cluster goes on."""

from __future__ import annotations

import time
import uuid
from typing import Final

from fleet.kube.services import installation
from fleet.models import Installation
from portal.core import clock

SAME: Final = uuid.UUID("5115c0de-0000-4000-8000-000000000001")


def use_same_installation() -> None:
    """Let the test's database go on with what earlier tests wrote on the cluster."""
    Installation.objects.update_or_create(
        pk=1,
        defaults={
            "identity": SAME,
            "database": installation.fingerprint(),
            "fence": time.time_ns(),
            "fence_nonce": "",
            "suspended_reason": "",
            "created_at": clock.now(),
        },
    )
