"""A shared volume that keeps downloaded models: the first pod fills it, later ones only look.

Each set of models has a directory of its own, named after its sources and their recorded digests. It
is downloaded under another name, compared with the record and renamed, so it is never seen half
full. `<directory>.files` is written last: its list of names and sizes is what later pods compare.
A lock keeps pods that start together from downloading twice. Without locks on the volume they
may, and the first one that is done wins.

Configurations of revisions are added to the directory of their version, one file each: a changed
setting does not download the model again.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from deployments.manifests.domain import triton_args
from deployments.manifests.domain.metadata import ServedRevision
from deployments.manifests.domain.model_files import digest_check

# The entry point of KServe's image, in all releases since 0.16.
ENTRY_POINT: Final = "/storage-initializer/scripts/initializer-entrypoint"
MOUNT: Final = "/mnt/volume"
# Environment of the script: where the volume is mounted, the directory of these models, and the
# recorded configurations as lines "uri path".
VOLUME: Final = "SLIPWAY_VOLUME"
COPY: Final = "SLIPWAY_COPY"
SETTINGS: Final = "SLIPWAY_SETTINGS"
_SETTINGS_FILE: Final = "configs/slipway-"
# $0 downloads; its arguments are pairs of a source and a path in the directory.
SCRIPT: Final = (
    r"""set -eu
check() (
"""
    + digest_check.SCRIPT
    + r""")
files_of() (
  cd "$1" && find . ! -type d ! -regex '\./[^/]*/configs/slipway-[0-9a-f]*\.pbtxt' \
    -printf '%s %P\n' | LC_ALL=C sort
)
is_complete() { [ -f "$copy.files" ] && [ -d "$copy" ] && [ "$(files_of "$copy")" = "$(cat "$copy.files")" ]; }
download() (
  root="$1"; shift; left=$#
  while [ "$left" -gt 0 ]; do
    uri="$1"; path="$root/$2"; shift 2
    mkdir -p "$path"; set -- "$@" "$uri" "$path"; left=$((left - 2))
  done
  "$entry" "$@"
)
entry="$0"
copy="$SLIPWAY_COPY"
cd "$SLIPWAY_VOLUME"
if ! [ -w . ]; then
  echo "The volume is not writable for user $(id -u). See the documentation of the model cache."
  exit 1
fi
exec 9>".$copy.lock"
if flock 9; then stale=; else stale='-mtime +0'; fi
find . -maxdepth 1 -name ".$copy.partial.*" $stale -exec rm -rf {} +
partial="$(mktemp -d ".$copy.partial.XXXXXXXX")"
trap 'rm -rf "$partial"' EXIT
chmod 755 "$partial"
if is_complete; then
  echo "$copy is on the volume: nothing is downloaded"
else
  download "$PWD/$partial/models" "$@"
  if [ -n "${SLIPWAY_DIGESTS+set}" ]; then SLIPWAY_MODELS="$partial/models"; check; fi
  files_of "$partial/models" >"$partial/files"
  if ! is_complete; then
    if [ -e "$copy" ]; then mv -T "$copy" "$partial/damaged"; fi
    mv -T "$partial/models" "$copy"
    mv -T "$partial/files" "$copy.files"
    echo "$copy was downloaded to the volume"
  fi
fi
printf '%s' "${SLIPWAY_SETTINGS-}" | while read -r uri path; do
  if ! [ -f "$copy/$path" ]; then
    download "$PWD/$partial" "$uri" settings
    mkdir -p "$copy/${path%/*}"
    mv -T "$partial/settings/${path##*/}" "$copy/$path"
  fi
  printf '%s' "$SLIPWAY_DIGESTS" | grep -F "  $path" | (cd "$copy" && sha256sum --check --strict --quiet -)
done
"""
)


def command() -> list[str]:
    return ["/bin/sh", "-c", SCRIPT, ENTRY_POINT]


def args(sources: list[tuple[str, str]]) -> list[str]:
    """Return each source and its path in the directory that the server mounts at MODELS."""
    return [
        part
        for uri, path in sources
        for part in (uri, path.removeprefix(triton_args.MODELS).lstrip("/") or ".")
    ]


def env(served: ServedRevision, sources: list[tuple[str, str]]) -> list[dict[str, str]]:
    """Return the environment of the download. External weights have no record to compare with."""
    values = {VOLUME: MOUNT, COPY: directory_of(served, sources)}
    if served.files or served.spec.llm is None:
        values[digest_check.RECORD] = digest_check.record_of(served)
        values[SETTINGS] = _settings_of(served, sources)
    return [{"name": name, "value": value} for name, value in values.items()]


def volume(served: ServedRevision, name: str) -> dict[str, Any]:
    claim = {"claimName": served.spec.storage.volume_claim}
    return {"name": name, "persistentVolumeClaim": claim}


def directory_of(served: ServedRevision, sources: list[tuple[str, str]]) -> str:
    """Return the directory of the models. It is the same for all revisions that serve the same models, whatever
    their settings.
    """
    lines = [f"{uri} {path}\n" for uri, path in sources]
    lines += [
        f"{file.sha256} {file.path}\n"
        for file in sorted(served.files, key=lambda file: file.path)
        if not _is_settings(file.path)
    ]
    return f"{served.model_name}-{hashlib.sha256(''.join(lines).encode()).hexdigest()[:16]}"


def _is_settings(path: str) -> bool:
    return path.partition("/")[2].startswith(_SETTINGS_FILE)


def _settings_of(served: ServedRevision, sources: list[tuple[str, str]]) -> str:
    """List each recorded configuration of the revision with its address in the bucket, one a line."""
    roots = {path.removeprefix(triton_args.MODELS).lstrip("/"): uri for uri, path in sources}
    lines = []
    for file in sorted(served.files, key=lambda file: file.path):
        if _is_settings(file.path):
            model, _, rest = file.path.partition("/")
            uri = f"{roots[model]}{rest}" if model in roots else f"{roots['']}{file.path}"
            lines.append(f"{uri} {file.path}\n")
    return "".join(lines)
