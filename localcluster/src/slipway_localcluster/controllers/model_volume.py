"""Models on a claim: what the shell command of `storage-initializer` does on a shared volume, made here
without a shell.

A claim is a directory of this machine. Each pod gets a copy of its models, because the local Triton needs
other files than the shared ones.
"""

import fcntl
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from slipway_localcluster.controllers import digest_check

VOLUME = "SLIPWAY_VOLUME"
COPY = "SLIPWAY_COPY"
SETTINGS = "SLIPWAY_SETTINGS"
_SETTINGS_FILE = re.compile(r"[^/]*/configs/slipway-[0-9a-f]*\.pbtxt")

Download = Callable[[str, Path], int]


def fill(
    volume: Path, environment: Mapping[str, str], pairs: Sequence[str], download: Download
) -> tuple[Path, str]:
    """Fill the volume, and return the directory of the models on it and the command's output. Raises FilesDiffer,
    and what `download` raises.
    """
    name = environment[COPY]
    copy = volume / name
    volume.mkdir(parents=True, exist_ok=True)
    with _locked(volume / f".{name}.lock"):
        for stale in volume.glob(f".{name}.partial.*"):
            shutil.rmtree(stale)
        partial = Path(tempfile.mkdtemp(prefix=f".{name}.partial.", dir=volume))
        try:
            message = _fill(copy, partial, environment, pairs, download)
            _add_settings(copy, partial, environment, download)
        finally:
            shutil.rmtree(partial)
    return copy, message


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fill(
    copy: Path,
    partial: Path,
    environment: Mapping[str, str],
    pairs: Sequence[str],
    download: Download,
) -> str:
    listing = copy.with_name(f"{copy.name}.files")
    if listing.exists() and copy.is_dir() and listing.read_text() == _files_of(copy):
        return f"{copy.name} is on the volume: nothing is downloaded"
    models = partial / "models"
    for uri, path in zip(pairs[::2], pairs[1::2], strict=True):
        (models / path).mkdir(parents=True, exist_ok=True)
        download(uri, models / path)
    if digest_check.RECORD in environment:
        digest_check.compare(models, environment[digest_check.RECORD])
    (partial / "files").write_text(_files_of(models))
    if copy.exists():
        copy.rename(partial / "damaged")
    models.rename(copy)
    (partial / "files").rename(listing)
    return f"{copy.name} was downloaded to the volume"


def _files_of(directory: Path) -> str:
    lines = []
    for file in directory.rglob("*"):
        path = file.relative_to(directory).as_posix()
        if not file.is_dir() and not _SETTINGS_FILE.fullmatch(path):
            lines.append(f"{file.stat().st_size} {path}\n")
    return "".join(sorted(lines))


def _add_settings(
    copy: Path, partial: Path, environment: Mapping[str, str], download: Download
) -> None:
    for line in environment.get(SETTINGS, "").splitlines():
        uri, _, path = line.partition(" ")
        if not (copy / path).is_file():
            target = partial / "settings"
            download(uri, target)
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            (target / Path(path).name).rename(copy / path)
        digest_check.compare_file(copy, path, environment.get(digest_check.RECORD, ""))
