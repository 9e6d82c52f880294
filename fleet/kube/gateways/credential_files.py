"""The one folder whose files may contain credentials of clusters.

Who registers a cluster names a file; without this the portal would read any file that it can, and
send a part of it to an address that the same person chose.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from fleet.kube.domain.errors import Refused


class OutsideFolder(Refused):
    """The file is elsewhere; the message names the folder."""


def path_of(named: str) -> Path:
    """Return the file of this name or path. Links are followed, as mounted Secrets are made of them. The file need
    not exist yet.

    Raises OutsideFolder.
    """
    folder = Path(settings.SLIPWAY_CLUSTER_CREDENTIALS_DIR)
    path = folder / named
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        # Links that lead in a circle.
        is_inside = False
    if not is_inside or path == folder:
        raise OutsideFolder(
            f"{named} is not a file in {folder}, the folder of cluster credentials "
            "(SLIPWAY_CLUSTER_CREDENTIALS_DIR)"
        )
    return path
