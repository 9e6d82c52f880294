"""Metadata that a server refuses in every kind."""

from __future__ import annotations

from typing import Any

from tests.fidelity.change import Changes, create, delete, patch, with_values
from tests.fidelity.objects import CONFIG, ROUTE
from tests.fidelity.row import Json

_KINDS = (("config-map", CONFIG), ("route", ROUTE))
_HELD = "slipway.dev/hold"
_OWNER: Json = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "owner",
    "uid": "11111111-1111-1111-1111-111111111111",
}


def _finalizers(rows: Changes, kind: str, manifest: Json) -> None:
    for name, finalizers in (
        ("without-domain", ["hold"]),
        ("orphan", ["orphan"]),
        ("foreground", ["foregroundDeletion"]),
        ("qualified", [_HELD]),
        ("with-space", ["slipway.dev/no hold"]),
        ("twice", [_HELD, _HELD]),
        ("both-standard", ["orphan", "foregroundDeletion"]),
    ):
        field = {"metadata": {"finalizers": finalizers}}
        rows.add(f"{kind}-finalizer-{name}", manifest, patch(field))
    held = with_values(manifest, [(("metadata", "finalizers"), [_HELD])])
    rows.add(
        f"{kind}-finalizer-while-deleting",
        held,
        delete(),
        patch({"metadata": {"finalizers": [_HELD, "slipway.dev/more"]}}),
    )
    rows.add(
        f"{kind}-label-while-deleting", held, delete(), patch({"metadata": {"labels": {"a": "b"}}})
    )
    rows.add(f"{kind}-again-while-deleting", held, delete(), create(manifest))
    rows.add(
        f"{kind}-deletion-time-taken-back",
        held,
        delete(),
        patch({"metadata": {"deletionTimestamp": None}}),
    )


def _created_with(rows: Changes, kind: str, manifest: Json) -> None:
    def created(name: str, field: str, value: Any) -> None:
        body = with_values(manifest, [(("metadata", field), value)])
        rows.alone(f"{kind}-with-{name}", body, create(body, dryRun="All"))

    created("an-owner", "ownerReferences", [_OWNER])
    for missing in _OWNER:
        owner = {name: value for name, value in _OWNER.items() if name != missing}
        created(f"an-owner-without-{missing}", "ownerReferences", [owner])
    ruling = {**_OWNER, "controller": True}
    other = {**ruling, "uid": "22222222-2222-2222-2222-222222222222"}
    created("two-controllers", "ownerReferences", [ruling, other])
    created("large-annotations", "annotations", {"slipway.dev/a": "x" * (256 * 1024 + 1)})
    created("an-annotation-in-capitals", "annotations", {"Slipway.dev/A": "x"})
    created("a-bad-annotation-name", "annotations", {"no spaces": "x"})
    created("a-long-label-value", "labels", {"a": "x" * 64})
    created("a-label-of-two-slashes", "labels", {"a/b/c": "x"})
    created("a-number-as-label", "labels", {"a": 1})
    created("a-long-name", "name", "x" * 254)
    created("a-name-with-slash", "name", "a/b")
    created("another-namespace", "namespace", "another")
    created("a-bad-generated-name", "generateName", "Not_It")


ROWS = Changes()
for _kind, _manifest in _KINDS:
    _finalizers(ROWS, _kind, _manifest)
    _created_with(ROWS, _kind, _manifest)
