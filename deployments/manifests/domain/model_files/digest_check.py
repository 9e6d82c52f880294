"""The init container that compares the downloaded files with the approved ones, before Triton starts.

Its command never varies: the record comes in the environment, and the shell passes it on as a single
word. It runs from Triton's own image, which has a shell and coreutils.
"""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import pod_template, triton_args
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision

NAME: Final = "digest-check"
# Lines as `sha256sum --check` reads them.
RECORD: Final = "SLIPWAY_DIGESTS"
DIRECTORY: Final = "SLIPWAY_MODELS"
# All recorded files match, and there are no others, except configurations of other revisions of the
# version: Triton loads the one that its command names, which is in the record.
SCRIPT: Final = r"""set -eu
cd "$SLIPWAY_MODELS"
printf '%s' "$SLIPWAY_DIGESTS" | sha256sum --check --strict --quiet -
recorded="$(printf '%s' "$SLIPWAY_DIGESTS" | cut -c67-)"
found="$(find . ! -type d ! -regex '\./[^/]*/configs/slipway-[0-9a-f]*\.pbtxt')"
others="$(printf '%s\n' "$found" | cut -c3- | grep -vxF -e "$recorded")" || [ "$?" -eq 1 ]
if [ -n "$others" ]; then
  printf '%s\n' "$others" | while IFS= read -r path; do
    printf '%s: not in the record\n' "$path"
  done
  exit 1
fi
"""


def container(
    context: ManifestContext, served: ServedRevision, mount: dict[str, Any]
) -> dict[str, Any]:
    """Return the container that compares the files with the record. `mount` is the volume that the download
    filled.
    """
    amounts = {"cpu": "1", "memory": "256Mi"}
    _, scratch, home = pod_template.scratch()
    return {
        "name": NAME,
        "image": served.spec.image or context.triton_image,
        "command": ["/bin/sh", "-c", SCRIPT],
        "env": [
            {"name": DIRECTORY, "value": triton_args.MODELS},
            {"name": RECORD, "value": record_of(served)},
            # Triton's image requests all GPUs of the node from runtimes that honour images.
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
            home,
        ],
        "resources": {"requests": dict(amounts), "limits": dict(amounts)},
        "securityContext": pod_template.security(is_read_only=True),
        # So that the pod's status names the file.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{**mount, "readOnly": True}, scratch],
    }


def record_of(served: ServedRevision) -> str:
    """Return the recorded digests as `sha256sum` writes them, sorted by path. Empty when nothing is recorded,
    which the check refuses.
    """
    files = sorted(served.files, key=lambda file: file.path)
    return "".join(f"{file.sha256}  {file.path}\n" for file in files)
