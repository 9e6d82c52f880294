"""`make release`: build everything that a release consists of into dist/.

The wheels of the portal and of the houses beside it, the chart as a package, the SBOM, the OpenAPI document, and the
SHA-256 of each. Only files that git knows are built. Two builds of one commit have the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from portal.management import install, sbom

REPOSITORY: Final = Path(__file__).resolve().parents[2]
_CHART: Final = Path("deploy/chart")
_WHEEL: Final = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")


class Unfit(Exception):
    """The tree cannot be released; the message says why."""


def main() -> None:
    target = REPOSITORY / "dist"
    try:
        for path in build(target):
            print(f"{path.stat().st_size:>10,} {path.relative_to(REPOSITORY)}")
    except Unfit as problem:
        sys.exit(f"{problem}")


def build(target: Path) -> list[Path]:
    """Replace what is in `target`. Raises Unfit where the versions of the tree differ."""
    version = shared_version(read_versions(REPOSITORY))
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources"
        _copy_known_files(sources)
        for project in (".", *install.HOUSES):
            _build_wheel(sources / project, target)
    _pack_chart(REPOSITORY / _CHART, target / f"slipway-{version}.tgz")
    (target / f"slipway-{version}.cdx.json").write_text(sbom.document(_committed_at()))
    shutil.copyfile(REPOSITORY / "docs/openapi.yaml", target / f"slipway-{version}.openapi.yaml")
    built = sorted(target.iterdir())
    sums = target / "SHA256SUMS"
    sums.write_text("".join(f"{_digest(path)}  {path.name}\n" for path in built))
    return [*built, sums]


def read_versions(tree: Path) -> Mapping[str, str]:
    """Return each version that the tree states, by the file that states it."""
    projects = (f"{project}/pyproject.toml" for project in (".", *install.HOUSES))
    stated = {
        name.removeprefix("./"): tomllib.loads((tree / name).read_text())["project"]["version"]
        for name in projects
    }
    chart = (tree / _CHART / "Chart.yaml").read_text()
    for key in ("version", "appVersion"):
        stated[f"{_CHART}/Chart.yaml ({key})"] = _first(rf"^{key}: (\S+)$", chart)
    stated["CHANGELOG.md"] = _first(r"^## (\d\S*)", (tree / "CHANGELOG.md").read_text())
    return stated


def shared_version(stated: Mapping[str, str]) -> str:
    """Return the version. Raises Unfit if there are several."""
    if len(set(stated.values())) != 1:
        lines = "\n".join(f"  {version or 'none':<8} {name}" for name, version in stated.items())
        raise Unfit(f"The versions differ; state the same one in each file:\n{lines}")
    return next(iter(stated.values()))


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def _copy_known_files(target: Path) -> None:
    for name in _git("ls-files", "-z").split("\0"):
        source = REPOSITORY / name
        if name and source.is_file():
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)


def _build_wheel(project: Path, target: Path) -> None:
    # The time of each file in the wheel, which would otherwise be that of the copy.
    seconds = str(int(_committed_at().timestamp()))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": seconds}
    command = [sys.executable, *_WHEEL, "--wheel-dir", str(target), str(project)]
    subprocess.run(command, env=environment, check=True)


def _pack_chart(chart: Path, target: Path) -> None:
    """Pack the chart as `helm package` does, with the chart's name as its folder."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in _files(chart):
            entry = tarfile.TarInfo(f"slipway/{path.relative_to(chart)}")
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    target.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _committed_at() -> datetime:
    return datetime.fromtimestamp(int(_git("log", "-1", "--format=%ct")), UTC)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
