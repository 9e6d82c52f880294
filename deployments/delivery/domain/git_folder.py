"""The folder of a namespace in a Git repository, as Argo CD and Flux read it.

    clusters/<cluster>/<namespace>/kustomization.yaml
                                  /_shared/<kind>-<name>.yaml
                                  /<deployment or pipeline>/<kind>-<name>.yaml

Every change is a pure function from the current files to the desired ones, so that it can be applied
again on top of a concurrent push. Secrets are never written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from deployments.manifests.domain import http_route, metadata
from deployments.manifests.domain.metadata import Manifest, to_yaml

# Paths are relative to the namespace's folder.
Files = Mapping[str, str]
Change = Callable[[Files], Files]

# Not a valid name of a deployment.
SHARED = "_shared"
_KUSTOMIZATION = "kustomization.yaml"
_OWN_LABELS = frozenset({metadata.DEPLOYMENT_ID_LABEL, metadata.PIPELINE_ID_LABEL})
_HEADER = "# Written by Slipway. Manual edits are overwritten by the next change request.\n"


def folder_of(path: str, *, cluster: str, namespace: str) -> str:
    return "/".join(part for part in (path, "clusters", cluster, namespace) if part)


def push(deployment: str, manifests: Sequence[Manifest]) -> Change:
    """Write these manifests; remove other files of the same revision."""
    new = _files(deployment, manifests)
    numbers = {number for manifest in manifests if (number := _revision_of(manifest))}

    def change(files: Files) -> Files:
        kept = {
            path: text
            for path, text in files.items()
            if not (_is_in(path, deployment) and _revision_in_text(text) in numbers)
        }
        return _complete(kept | new)

    return change


def remove_revision(deployment: str, number: int) -> Change:
    def change(files: Files) -> Files:
        return _complete(
            {
                path: text
                for path, text in files.items()
                if not (_is_in(path, deployment) and _revision_in_text(text) == str(number))
            }
        )

    return change


def remove_route(deployment: str) -> Change:
    route_path = f"{deployment}/{http_route.KIND.lower()}-{deployment}.yaml"

    def change(files: Files) -> Files:
        return _complete({path: text for path, text in files.items() if path != route_path})

    return change


def exactly(deployment: str, manifests: Sequence[Manifest]) -> Change:
    """Make the deployment's folder hold just these manifests. Without any, the folder is removed."""
    new = _files(deployment, manifests)

    def change(files: Files) -> Files:
        kept = {path: text for path, text in files.items() if not _is_in(path, deployment)}
        return _complete(kept | new)

    return change


def _files(deployment: str, manifests: Sequence[Manifest]) -> dict[str, str]:
    return {
        _path(deployment, manifest): _HEADER + to_yaml([manifest])
        for manifest in manifests
        if manifest["kind"] != "Secret"
    }


def _path(deployment: str, manifest: Manifest) -> str:
    is_own = not _OWN_LABELS.isdisjoint(_labels(manifest))
    folder = deployment if is_own else SHARED
    return f"{folder}/{manifest['kind'].lower()}-{manifest['metadata']['name']}.yaml"


def _complete(files: Files) -> Files:
    """Add the kustomization of each folder that is not empty."""
    plain = {path: text for path, text in files.items() if not path.endswith(_KUSTOMIZATION)}
    folders: dict[str, list[str]] = {}
    for path in sorted(plain):
        folder, _, name = path.rpartition("/")
        if folder and "/" not in folder and name.endswith((".yaml", ".yml")):
            folders.setdefault(folder, []).append(name)
    kustomizations = {
        f"{folder}/{_KUSTOMIZATION}": _kustomization(names) for folder, names in folders.items()
    }
    if folders:
        kustomizations[_KUSTOMIZATION] = _kustomization(sorted(folders))
    return plain | kustomizations


def _kustomization(resources: Sequence[str]) -> str:
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(resources),
    }
    return _HEADER + yaml.safe_dump(kustomization, sort_keys=False)


def _is_in(path: str, deployment: str) -> bool:
    return path.startswith(f"{deployment}/")


def _labels(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    return (manifest.get("metadata") or {}).get("labels") or {}


def _revision_of(manifest: Mapping[str, Any]) -> str:
    return _labels(manifest).get(metadata.REVISION_LABEL, "")


def _revision_in_text(text: str) -> str:
    """Return the revision of a file's manifest. Empty for a file that is not a manifest: files that others added
    stay.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return ""
    return _revision_of(document) if isinstance(document, dict) else ""
