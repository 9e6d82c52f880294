"""A release is built from one tree, and its wheel is a portal that answers."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from portal.management import release
from tests import plain_http
from tests.portal.install import web_process

VERSION = release.read_versions(release.REPOSITORY)["pyproject.toml"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("release") / "dist"
    release.build(target)
    return target


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, built: Path) -> Path:
    """An environment with the portal's wheel and the packages of the production image, nothing else."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    packages = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    for source in _files_of_the_image():
        (packages / source.name).symlink_to(source)
    wheel = built / f"slipway-{VERSION}-py3-none-any.whl"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*command, "--no-deps", "--no-index", str(wheel)], check=True)
    return folder


def _files_of_the_image() -> Iterator[Path]:
    """The files and folders in this environment of what requirements-image.lock names."""
    lock = (release.REPOSITORY / "requirements-image.lock").read_text()
    here = Path(sysconfig.get_path("purelib"))
    names = set()
    for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE):
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue  # of another platform or another Python
        names |= {file.parts[0] for file in files} - {"..", "__pycache__"}
    return (here / name for name in sorted(names) if (here / name).exists())


def _variables(folder: Path) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {
        **kept,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "SLIPWAY_DATABASE_URL": f"sqlite:///{folder / 'portal.sqlite3'}",
        "SLIPWAY_STATIC_ROOT": str(folder / "staticfiles"),
        "SLIPWAY_DEBUG": "0",
    }


def test_everything_is_built_and_summed(built: Path) -> None:
    wheels = ["slipway", "slipway_client", "slipway_demo", "slipway_localcluster"]

    names = {path.name for path in built.iterdir()}

    assert names == {
        *(f"{wheel}-{VERSION}-py3-none-any.whl" for wheel in wheels),
        f"slipway-{VERSION}.tgz",
        f"slipway-{VERSION}.cdx.json",
        f"slipway-{VERSION}.openapi.yaml",
        "SHA256SUMS",
    }
    for line in (built / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((built / name).read_bytes()).hexdigest() == digest
        names.remove(name)
    assert names == {"SHA256SUMS"}


def test_the_same_tree_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    release.build(tmp_path / "dist")

    assert (tmp_path / "dist" / "SHA256SUMS").read_text() == (built / "SHA256SUMS").read_text()


def test_the_chart_s_package_has_the_chart(built: Path) -> None:
    with tarfile.open(built / f"slipway-{VERSION}.tgz") as package:
        names = set(package.getnames())
        chart = package.extractfile("slipway/Chart.yaml")
        assert chart is not None
        stated = yaml.safe_load(chart.read())

    assert (stated["name"], stated["version"]) == ("slipway", VERSION)
    folder = release.REPOSITORY / "deploy" / "chart"
    assert names == {f"slipway/{p.relative_to(folder)}" for p in folder.rglob("*") if p.is_file()}


def test_the_portal_s_wheel_has_all_it_reads_and_no_test(built: Path) -> None:
    with zipfile.ZipFile(built / f"slipway-{VERSION}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())

    for top in ("templates", "static", "docs"):
        there = {p for p in (release.REPOSITORY / top).rglob("*") if p.is_file()}
        known = {p for p in there if "__pycache__" not in p.parts}
        expected = {f"portal/bundled/{p.relative_to(release.REPOSITORY)}" for p in known}
        assert expected <= names
    assert "fleet/prices/data/gpu_instances.csv" in names
    assert {name.split("/")[0] for name in names} == {
        *("portal", "deployments", "fleet", f"slipway-{VERSION}.dist-info"),
    }


def test_versions_that_differ_are_named_and_nothing_is_built(tmp_path: Path) -> None:
    stated = {"pyproject.toml": "0.3.0", "client/pyproject.toml": "0.2.0", "CHANGELOG.md": ""}

    with pytest.raises(release.Unfit) as refusal:
        release.shared_version(stated)

    assert str(refusal.value).splitlines()[1:] == [
        "  0.3.0    pyproject.toml",
        "  0.2.0    client/pyproject.toml",
        "  none     CHANGELOG.md",
    ]


def test_the_wheel_alone_is_examined_by_doctor_and_serves_pages(
    environment: Path, tmp_path: Path
) -> None:
    variables, portal = _variables(tmp_path), str(environment / "bin" / "slipway-portal")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [portal, *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    migrated = run("migrate", "--verbosity", "0")
    collected = run("collectstatic", "--noinput", "--verbosity", "0")
    examined = run("doctor", "--area", "database", "--area", "settings")

    assert (migrated.returncode, migrated.stderr) == (0, "")
    assert (collected.returncode, collected.stderr) == (0, "")
    assert "ok      database: " in examined.stdout
    assert "Traceback" not in examined.stderr
    with ExitStack() as parts:
        address = web_process.start(
            parts,
            tmp_path,
            dict(variables),
            tmp_path / "web.log",
            python=environment / "bin" / "python",
        )
        page = plain_http.client.get(f"{address}/sign-in")
        (style,) = re.findall(r'href="(/static/[^"]+\.css)"', page.text)[:1]
        css = plain_http.client.get(f"{address}{style}")

    assert page.status_code == 200
    assert "Sign in" in page.text
    assert css.status_code == 200
    assert css.headers["content-type"].startswith("text/css")
