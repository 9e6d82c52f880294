"""Which policy of Envoy Gateway holds for which HTTPRoute, and the statuses of policies: pure."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from slipway_localcluster.controllers import conditions
from slipway_localcluster.controllers.ownership import is_deleted
from slipway_localcluster.errors import JsonObject

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Attachment:
    """A policy and the routes that it applies to. `routes` by namespace and name; `conflict` is empty where no
    older policy has one of its routes.
    """

    policy: JsonObject
    routes: Sequence[Key]
    conflict: str = ""


def attach(policies: Iterable[JsonObject], routes: Set[Key]) -> list[Attachment]:
    """Attach policies to these routes. Of several of one kind for one route the oldest holds, as in the Gateway API."""
    attached: list[Attachment] = []
    taken: set[Key] = set()
    for policy in sorted(policies, key=_age):
        if is_deleted(policy):
            continue
        namespace = policy["metadata"]["namespace"]
        targets = [target["name"] for target in policy["spec"].get("targetRefs") or ()]
        names = [name for name in targets if (namespace, name) in routes]
        if not names:
            continue
        lost = [name for name in names if (namespace, name) in taken]
        conflict = (
            f"Unable to target HTTPRoute {', '.join(lost)}, another {policy['kind']} has already "
            "attached to it."
            if lost
            else ""
        )
        own = [(namespace, name) for name in names if name not in lost]
        taken.update(own)
        attached.append(Attachment(policy, own, conflict))
    return attached


def _age(policy: JsonObject) -> tuple[str, str, str]:
    metadata = policy["metadata"]
    return metadata.get("creationTimestamp") or "", metadata["namespace"], metadata["name"]


def status_of(
    attachment: Attachment, gateway: Mapping[str, str], controller: str, problem: str
) -> JsonObject:
    """Return `status.ancestors` with the Gateway, and those of other controllers."""
    reason, message = "Accepted", "Policy has been accepted."
    if attachment.conflict:
        reason, message = "Conflicted", attachment.conflict
    elif problem:
        reason, message = "Invalid", problem
    status = conditions.TRUE if reason == "Accepted" else conditions.FALSE
    desired = conditions.condition("Accepted", status, reason=reason, message=message) | {
        "observedGeneration": attachment.policy["metadata"]["generation"]
    }
    before = (attachment.policy.get("status") or {}).get("ancestors") or ()
    own = [item for item in before if item.get("controllerName") == controller]
    others = [item for item in before if item.get("controllerName") != controller]
    current = own[0]["conditions"] if own else None
    return {
        "ancestors": [
            *others,
            {
                "ancestorRef": dict(gateway),
                "controllerName": controller,
                "conditions": conditions.merge(current, [desired]),
            },
        ]
    }
