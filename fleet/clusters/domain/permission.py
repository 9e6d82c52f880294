"""One permission on a cluster, as RBAC grants it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Permission:
    """A permission on a cluster. `resource` may name a subresource: pods/log. `names` limits it to objects of these
    names.

    `is_per_team`: needed only in the namespaces of teams.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    is_per_team: bool = True
    names: tuple[str, ...] = ()

    def attributes(self, verb: str, namespace: str = "") -> dict[str, str]:
        """Return the resource attributes of a SelfSubjectAccessReview."""
        resource, _, subresource = self.resource.partition("/")
        attributes = {
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "verb": verb,
            "namespace": namespace,
            "name": self.names[0] if self.names else "",
        }
        return {key: value for key, value in attributes.items() if value or key == "group"}

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource
