"""Volumes of a pod: directories on this machine, whatever their declared type."""

from pathlib import Path, PurePosixPath

from fleet.localcluster.errors import JsonObject


class Volumes:
    """Maps paths inside a pod's containers to real ones."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "volumes"

    def resolve(self, container: JsonObject, path: str) -> Path | None:
        """The directory behind a path in the container; None outside of its volumes."""
        requested = PurePosixPath(path)
        if not requested.is_absolute() or ".." in requested.parts:
            return None
        mounts = container.get("volumeMounts") or ()
        for mount in sorted(mounts, key=lambda item: -len(item["mountPath"])):
            if requested.is_relative_to(mount["mountPath"]):
                real = self._directory / str(mount["name"]) / str(mount.get("subPath") or "")
                return real / requested.relative_to(str(mount["mountPath"]))
        return None
