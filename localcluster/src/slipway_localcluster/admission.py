"""The admission of new pods by an API server, which refuses references to objects that do not exist."""

from slipway_localcluster.errors import Forbidden, JsonObject
from slipway_localcluster.kinds import POD, SERVICE_ACCOUNT, Kind
from slipway_localcluster.store import Store

_PRIORITY_CLASSES = ("", "system-cluster-critical", "system-node-critical")


def require_admitted(store: Store, kind: Kind, obj: JsonObject) -> None:
    """Raise Forbidden."""
    if kind is not POD:
        return
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    account = spec.get("serviceAccountName") or "default"
    prefix = f'pods "{metadata.get("name", "")}" is forbidden: '
    if store.find(SERVICE_ACCOUNT, metadata.get("namespace"), account) is None:
        place = f"{metadata.get('namespace')}/{account}"
        raise Forbidden(
            f'{prefix}error looking up service account {place}: serviceaccount "{account}" not found'
        )
    if (spec.get("priorityClassName") or "") not in _PRIORITY_CLASSES:
        name = spec["priorityClassName"]
        raise Forbidden(f"{prefix}no PriorityClass with name {name} was found")
