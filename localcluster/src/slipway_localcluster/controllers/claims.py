"""Binds PersistentVolumeClaims: each is a directory of this machine, whatever its class and size."""

from contextlib import suppress

from slipway_localcluster.errors import Conflict, JsonObject, NotFound
from slipway_localcluster.kinds import CLAIM
from slipway_localcluster.store import Store

BOUND = "Bound"


class Claims:
    def __init__(self, store: Store) -> None:
        self._store = store

    def reconcile(self) -> None:
        for claim in self._store.list(CLAIM):
            if (claim.get("status") or {}).get("phase") != BOUND:
                with suppress(Conflict, NotFound):
                    self._store.replace_status(CLAIM, {**claim, "status": _bound(claim["spec"])})


def _bound(spec: JsonObject) -> JsonObject:
    return {
        "phase": BOUND,
        "accessModes": spec["accessModes"],
        "capacity": {"storage": spec["resources"]["requests"]["storage"]},
    }
