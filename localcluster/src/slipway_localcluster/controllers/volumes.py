"""Volumes of a pod: directories on this machine, whatever their declared type.

Those of a claim are shared by the pods of the namespace.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from slipway_localcluster.errors import JsonObject

_FOLDER = "volumes"


def make_empty(pod: JsonObject, directory: Path) -> None:
    """Make the volumes that a kubelet makes for a new pod."""
    for volume in pod["spec"].get("volumes") or ():
        if "emptyDir" in volume:
            (directory / _FOLDER / volume["name"]).mkdir(parents=True, exist_ok=True)


class Volumes:
    """Maps paths inside a pod's containers to real ones."""

    def __init__(self, directory: Path, claims: Mapping[str, Path] | None = None) -> None:
        self._directory = directory / _FOLDER
        self._claims = claims or {}

    def claim_at(self, container: JsonObject, path: str) -> tuple[Path, Path] | None:
        """Return the shared directory of the claim that is mounted there, and the pod's own for its copies."""
        for mount in container.get("volumeMounts") or ():
            name = str(mount["name"])
            if mount["mountPath"] == path and name in self._claims:
                return self._claims[name], self._directory / name
        return None

    def resolve(self, container: JsonObject, path: str) -> Path | None:
        """Return the directory behind a path in the container. None outside of its volumes."""
        requested = PurePosixPath(path)
        if not requested.is_absolute() or ".." in requested.parts:
            return None
        mounts = container.get("volumeMounts") or ()
        for mount in sorted(mounts, key=lambda item: -len(item["mountPath"])):
            if requested.is_relative_to(mount["mountPath"]):
                real = self._directory / str(mount["name"]) / str(mount.get("subPath") or "")
                return real / requested.relative_to(str(mount["mountPath"]))
        return None
