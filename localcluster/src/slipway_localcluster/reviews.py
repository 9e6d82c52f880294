"""Access and identity reviews: the owner of the token may do everything."""

from slipway_localcluster.errors import JsonObject

_ACCESS = ("authorization.k8s.io", "selfsubjectaccessreviews")
_IDENTITY = ("authentication.k8s.io", "selfsubjectreviews")


def is_review(group: str, rest: list[str]) -> bool:
    return len(rest) == 1 and (group, rest[0]) in (_ACCESS, _IDENTITY)


def evaluate(plural: str, body: JsonObject) -> JsonObject:
    if plural == _IDENTITY[1]:
        user = {"username": "local", "groups": ["system:masters", "system:authenticated"]}
        return _review("authentication.k8s.io/v1", "SelfSubjectReview", {"userInfo": user})
    status = {"allowed": True, "reason": "the local cluster's only user may do everything"}
    return _review("authorization.k8s.io/v1", "SelfSubjectAccessReview", status) | {
        "spec": body.get("spec", {})
    }


def _review(api_version: str, kind: str, status: JsonObject) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "status": status}
