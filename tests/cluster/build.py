"""Build the programs of the control plane from published Go modules, once for each set of versions.

The builds lie in a cache outside the work tree and are named after everything that they depend on.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import go_toolchain
from tests.cluster.go_toolchain import Go, NotInTime, Unavailable

_BINARIES = Path(__file__).with_name("binaries")
_KUBECTL = Path(sys.executable).with_name("kubectl")
_COMPONENT_BASE = "k8s.io/component-base/version"
# Bounds a first build on a machine whose run has an end of its own.
_LONGEST_MINUTES = "SLIPWAY_CLUSTER_BUILD_MINUTES"
_KSERVE = "github.com/kserve/kserve"


@dataclass(frozen=True, slots=True)
class Artifact:
    """What one Go module of `binaries/` makes.

    `programs`: package by the name of the program. `release_of`: the module whose version names the
    artifact. `manifests`: for each name, kustomizations or folders of YAML files inside modules.
    """

    name: str
    release_of: str
    programs: Mapping[str, str]
    stamps_version: bool = False
    manifests: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return _BINARIES / self.name

    @property
    def release(self) -> str:
        text = (self.folder / "go.mod").read_text()
        match = re.search(
            rf"^(?:require |\t){re.escape(self.release_of)} (v\S+)", text, re.MULTILINE
        )
        assert match, f"{self.folder}/go.mod requires no {self.release_of}"
        return match[1]

    @property
    def minor(self) -> tuple[int, int]:
        """Return major and minor version of the release: (1, 36)."""
        major, minor, _ = self.release.removeprefix("v").split(".", 2)
        return int(major), int(minor)

    def digest(self, go: Go) -> str:
        text = json.dumps([asdict(self), go.version], sort_keys=True)
        parts = (text.encode(), *(path.read_bytes() for path in self.sources()))
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]

    def sources(self) -> Sequence[Path]:
        """Files that a build depends on."""
        return [self.folder / "go.mod", self.folder / "go.sum"]

    def variables(self) -> Mapping[str, str]:
        """Values of variables of its programs, as the linker sets them."""
        if not self.stamps_version:
            return {}
        major, minor, _ = self.release.removeprefix("v").split(".", 2)
        stamps = {"gitVersion": self.release, "gitMajor": major, "gitMinor": minor}
        return {f"{_COMPONENT_BASE}.{name}": value for name, value in stamps.items()}

    @contextlib.contextmanager
    def module(self, go: Go) -> Iterator[Path]:
        """The folder of the module that is built."""
        yield self.folder


def _control_plane(name: str) -> Artifact:
    return Artifact(
        name=name,
        release_of="k8s.io/kubernetes",
        programs={
            "etcd": "go.etcd.io/etcd/server/v3",
            "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
            "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
            "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
        },
        stamps_version=True,
    )


# Building one takes minutes: CI runs the first.
CONTROL_PLANES = {
    "1.36": _control_plane("control-plane"),
    "1.37": _control_plane("control-plane-1.37"),
}
CONTROL_PLANE = CONTROL_PLANES[os.environ.get("SLIPWAY_CLUSTER_KUBERNETES") or "1.36"]

HELM = Artifact(
    name="helm",
    release_of="helm.sh/helm/v4",
    programs={"helm": "helm.sh/helm/v4/cmd/helm"},
)


def _kserve(release: str, programs: Sequence[str], sources: Sequence[str]) -> Artifact:
    """Controllers of a release of KServe, and what it ships: `sources` are kustomizations of its module."""
    return Artifact(
        name=f"kserve-{release}",
        release_of=_KSERVE,
        programs={f"kserve-{name}": f"{_KSERVE}/cmd/{name}" for name in programs},
        manifests={
            # Schemas of the kinds that KServe's controllers use, of the versions that it is built with.
            "schemas": (
                ("sigs.k8s.io/gateway-api", "config/crd/standard"),
                ("sigs.k8s.io/lws", "config/crd/bases"),
                ("github.com/kedacore/keda/v2", "config/crd/bases"),
            ),
            "kserve": tuple((_KSERVE, f"config/{source}") for source in sources),
            "runtimes": ((_KSERVE, "config/clusterresources"),),
        },
    )


_ALL = ("manager", "llmisvc", "localmodel")
_SOURCES = ("default", "llmisvc", "localmodels", "configmap")
KSERVE = _kserve("0.20", _ALL, _SOURCES)
# Before 0.18 the portal uses neither LLMInferenceService nor LocalModelCache: their controllers are
# left out.
# The newest first, which are built first.
OLDER_KSERVE = (
    _kserve("0.19", _ALL, _SOURCES),
    _kserve(
        "0.17", ("manager",), ("default", "configmap", "crd/full/llmisvc", "crd/full/localmodel")
    ),
    _kserve("0.16", ("manager",), ("default",)),
)
KSERVE_RELEASES = (KSERVE, *OLDER_KSERVE)


# Supported releases that are not run, because the module proxy of our builds does not serve them.
NOT_RUN = frozenset({(0, 18)})


@dataclass(frozen=True, slots=True)
class Build:
    artifact: Artifact
    folder: Path
    seconds: float

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def manifests(self, name: str) -> list[dict[str, Any]]:
        loaded: list[dict[str, Any]] = json.loads((self.folder / f"{name}.json").read_text())
        return loaded

    def describe(self) -> str:
        size = sum(path.stat().st_size for path in (self.folder / "bin").iterdir()) // 2**20
        how = f"built in {self.seconds:.0f} s" if self.seconds else "from the cache"
        programs = ", ".join(self.artifact.programs) or ", ".join(self.artifact.manifests)
        return f"{self.artifact.release_of} {self.artifact.release} ({how}, {size} MiB): {programs}"


def cache_folder() -> Path:
    named = os.environ.get("SLIPWAY_CLUSTER_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slipway" / "cluster"


def build_all(
    artifacts: Sequence[Artifact],
    *,
    optional: Sequence[Artifact] = (),
    least_minutes: float = 0.0,
) -> list[Build]:
    """Those of `optional` that there is no time for are left out, with a message. Raises Unavailable where
    Go or its modules cannot be had and the cache lacks one of `artifacts`, NotInTime where only time was lacking.
    """
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    go = go_toolchain.find(cache)
    minutes = max(float(os.environ.get(_LONGEST_MINUTES) or "inf"), least_minutes)
    ends_at = time.monotonic() + minutes * 60
    builds = [_build_once(cache, artifact, go, ends_at) for artifact in artifacts]
    for artifact in optional:
        try:
            builds.append(_build_once(cache, artifact, go, ends_at))
        except (Unavailable, NotInTime) as error:
            print(f"{artifact.release_of} {artifact.release} is SKIPPED. {error}", flush=True)
    return builds


def cached(artifact: Artifact) -> Build | None:
    cache = cache_folder()
    folder = _place(cache, artifact, go_toolchain.find(cache))
    return Build(artifact, folder, 0.0) if folder.is_dir() else None


def _build_once(cache: Path, artifact: Artifact, go: Go, ends_at: float) -> Build:
    """Return the build, made if the cache has none. A second run waits for the first."""
    folder = _place(cache, artifact, go)
    with locked(cache / f"{artifact.name}.lock"):
        if folder.is_dir():
            return Build(artifact, folder, 0.0)
        go_toolchain.require_modules(go)
        try:
            return Build(artifact, folder, _build(cache, artifact, go, ends_at))
        except subprocess.TimeoutExpired as error:
            raise NotInTime(
                f"{artifact.name} was not built within {os.environ[_LONGEST_MINUTES]} minutes "
                f"({_LONGEST_MINUTES}). The next build continues from Go's own cache."
            ) from error


def _place(cache: Path, artifact: Artifact, go: Go) -> Path:
    return cache / f"{artifact.name}-{artifact.release}-{artifact.digest(go)}"


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(cache: Path, artifact: Artifact, go: Go, ends_at: float) -> float:
    """The seconds it took. The folder appears when it is complete."""
    started = time.monotonic()
    partial = cache / f"{artifact.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "bin").mkdir(parents=True)
    print(f"Building {artifact.release_of} {artifact.release}: minutes, once", flush=True)
    with artifact.module(go) as module:
        for name, package in artifact.programs.items():
            output = str(partial / "bin" / name)
            ldflags = " ".join(_ldflags(artifact))
            left = None if ends_at == float("inf") else max(1.0, ends_at - time.monotonic())
            command = ("build", "-ldflags", ldflags, "-o", output, package)
            go.run(*command, folder=module, seconds=left)
            print(f"  {name} after {time.monotonic() - started:.0f} s", flush=True)
    for name, sources in artifact.manifests.items():
        rendered = [item for source in sources for item in _render(artifact, go, *source)]
        (partial / f"{name}.json").write_text(json.dumps(rendered))
    partial.replace(_place(cache, artifact, go))
    return time.monotonic() - started


def _ldflags(artifact: Artifact) -> list[str]:
    settings = (f"-X {name}={value}" for name, value in artifact.variables().items())
    return ["-s", "-w", *settings]


def _render(artifact: Artifact, go: Go, module: str, path: str) -> list[dict[str, Any]]:
    """The objects of a kustomization, or of the YAML files of a folder without one."""
    where = go.run("list", "-m", "-f", "{{.Dir}}", module, folder=artifact.folder).strip()
    folder = Path(where) / path
    if (folder / "kustomization.yaml").is_file():
        command = [str(_KUBECTL), "kustomize", str(folder)]
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    else:
        text = "\n---\n".join(file.read_text() for file in sorted(folder.glob("*.yaml")))
    return [item for item in yaml.load_all(text, Loader=yaml.CSafeLoader) if item]
