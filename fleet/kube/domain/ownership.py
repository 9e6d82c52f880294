"""Which installation of Slipway wrote an object, by a label; and the fence of a namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleet.kube.domain.resource_types import Manifest

LABEL: Final = "slipway.dev/installation"
FENCE: Final = "slipway.dev/installation-fence"
MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "slipway"}
# Their controllers copy labels to pods: a label that is added to a running one restarts it.
COPIED_TO_PODS: Final = frozenset(
    {"InferenceService", "LLMInferenceService", "LLMInferenceServiceConfig", "InferenceGraph"}
)
_MAX_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Fence:
    """The number of a write, and what distinguishes it from the same number of a copy."""

    number: int
    nonce: str

    @classmethod
    def read(cls, item: Mapping[str, Any]) -> Fence | None:
        """Return the fence of a namespace. None if it has none, or one that nobody here wrote."""
        text = (item["metadata"].get("annotations") or {}).get(FENCE, "")
        number, _, nonce = text.partition(".")
        return cls(int(number), nonce) if number.isdecimal() else None

    def __str__(self) -> str:
        return f"{self.number}.{self.nonce}"

    def is_written_by_a_copy(self, last: Fence) -> bool:
        """Whether a database whose last write is `last` cannot have written this."""
        return self.number > last.number or (self.number == last.number and self != last)


@dataclass(frozen=True, slots=True)
class OtherInstallation:
    """The objects of another installation on a cluster. The model of `Cluster.other_installations`."""

    identity: str
    namespaces: tuple[str, ...]
    objects: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OtherInstallation:
        return cls(data["identity"], tuple(data["namespaces"]), data["objects"])

    def to_json(self) -> dict[str, Any]:
        return {
            "identity": self.identity,
            "namespaces": list(self.namespaces),
            "objects": self.objects,
        }


def owner_of(item: Mapping[str, Any]) -> str:
    """Return the identity that the object carries; empty if it carries none."""
    return str((item["metadata"].get("labels") or {}).get(LABEL, ""))


def is_managed(item: Mapping[str, Any]) -> bool:
    """Whether any installation of Slipway wrote the object, or a controller that copies labels."""
    return MANAGED_BY.items() <= (item["metadata"].get("labels") or {}).items()


def stamp(manifest: Manifest, identity: str, live: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the manifest with the identity. A running model from before it keeps its labels."""
    if live is not None and manifest["kind"] in COPIED_TO_PODS and not owner_of(live):
        return dict(manifest)
    meta = manifest["metadata"]
    labels = {**(meta.get("labels") or {}), LABEL: identity}
    return {**manifest, "metadata": {**meta, "labels": labels}}


def describe_foreign(item: Mapping[str, Any]) -> str:
    """Say that an object is another installation's, and what to do."""
    name = f"{item['kind']} {item['metadata']['name']}"
    return (
        f"{name} belongs to another installation of Slipway ({owner_of(item)}). Nothing was changed. "
        "Use another namespace, or have a platform admin run `manage.py adopt`."
    )


def describe_unproven(namespace: str, names: Sequence[str]) -> str:
    """Say that a namespace has objects of Slipway that this installation has no record of writing."""
    shown = ", ".join(names[:_MAX_NAMED])
    more = len(names) - _MAX_NAMED
    listed = f" ({shown}{f' and {more} more' if more > 0 else ''})" if names else ""
    return (
        f"Namespace {namespace} was written by an installation of Slipway that has no record here"
        f"{listed}. Nothing was changed. "
        "Use another namespace, or have a platform admin run `manage.py adopt`."
    )


def summarise_others(items: Sequence[Mapping[str, Any]], identity: str) -> list[OtherInstallation]:
    """Group the objects of other installations by identity."""
    by_owner: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        owner = owner_of(item)
        if owner and owner != identity and not item["metadata"].get("ownerReferences"):
            by_owner.setdefault(owner, []).append(item)
    return [
        OtherInstallation(
            owner,
            tuple(sorted({item["metadata"].get("namespace", "") for item in owned})),
            len(owned),
        )
        for owner, owned in sorted(by_owner.items())
    ]
