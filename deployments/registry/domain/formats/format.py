"""The definition of a format of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from deployments.registry.domain.artifacts import zip_names
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.forests.comparison import Sample
from deployments.registry.domain.signatures import Signature, Tensor
from deployments.sizing.domain.onnx import VramEstimate
from deployments.spec.domain.engines import ONNX_ENGINES

HEAD_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Context:
    """The data that complete a reading: the path that the detection gave, and what was declared."""

    model: str
    main: str
    paths: tuple[str, ...]
    max_batch_size: int
    supports_batching: bool | None = None
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    compute_capability: str = ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The data that were read from an artifact.

    `details` are the lines of the checklist by step: "Inputs and outputs", "Runtime", "Batching" and
    "GPU memory". `layout` maps each path of the serving repository to a path of the artifact, and
    `generated` to a text, or to the bytes of a converted model; without a configuration among them, the signature's is added.
    """

    signature: Signature
    estimate: VramEstimate
    details: Mapping[str, str]
    layout: Mapping[str, str]
    generated: Mapping[str, str | bytes] = field(default_factory=dict)
    # Steps among `details` that end with a warning.
    warnings: frozenset[str] = frozenset()
    # Rows whose answers are known, for the load test.
    sample: Sample | None = None


@dataclass(frozen=True, slots=True)
class ArtifactReading:
    """The way in which the sandbox reads an artifact, and what follows from it.

    `task` is "module:function", from {"main", "format", "model"} (and "path", the main file on disk,
    with `is_read_locally`) and the artifact to facts in JSON. `conclude` makes an Inspection of them.
    Both raise NotServable; `conclude` raises NeedsDeclaration where a declaration would help.
    """

    task: str
    conclude: Callable[[Mapping[str, Any], Context], Inspection]


@dataclass(frozen=True, slots=True)
class Format:
    """A format of models. `key` is the column `format` of a version, `name` what people call it.

    `detect` gives the path of the main file ("" for the whole artifact), or None for another format.
    `listed_as` names it among the formats that can be served, where only some of its files can.
    A format with `advice` is not accepted; the advice says how to convert it. `export_advice` says it of one
    that is quarantined for good.
    A format without a `reading` has an examination of its own in deployments/registry/services.
    `is_declared`: its files do not state inputs and outputs, so the uploader declares them.
    `engines` are those that load a version of it.
    `is_about_one_file`: its refusal names the main file of a folder.
    `is_read_locally`: its examination needs the files on disk, each at `local_path(path, main)`.
    """

    key: str
    name: str
    detect: Callable[[Artifact], str | None]
    advice: str = ""
    export_advice: str = "Export the model to ONNX, which contains no code."
    listed_as: str = ""
    endings: tuple[str, ...] = ()
    has_code: bool = False
    is_declared: bool = False
    is_about_one_file: bool = False
    is_read_locally: bool = False
    local_path: Callable[[str, str], str] = lambda path, main: path
    reading: ArtifactReading | None = None
    # Reading runs nothing of the file, so whether an engine serves it is known before anybody decides on a release.
    is_read_before_release: bool = False
    engines: tuple[str, ...] = ONNX_ENGINES

    @property
    def is_accepted(self) -> bool:
        return not self.advice

    @property
    def can_be_released(self) -> bool:
        """Whether a release can admit the format. False for code that no engine serves, whoever releases it."""
        return self.reading is not None or not self.has_code

    @property
    def is_for_triton(self) -> bool:
        """Whether its serving repository is one of Triton, with a configuration."""
        return self.engines == ONNX_ENGINES


def head_of(artifact: Artifact, path: str) -> bytes:
    return artifact.read(path, 0, min(HEAD_BYTES, artifact.sizes[path]))


def single_file(matches: Callable[[bytes, str], bool]) -> Callable[[Artifact], str | None]:
    """Return a detector of artifacts of one file, by its first HEAD_BYTES bytes and its name in lower case."""

    def detect(artifact: Artifact) -> str | None:
        if len(artifact.sizes) != 1:
            return None
        path = next(iter(artifact.sizes))
        is_match = matches(head_of(artifact, path), PurePosixPath(path).name.lower())
        return path if is_match else None

    return detect


def zip_of(*kinds: str) -> Callable[[Artifact], str | None]:
    """Return a detector of artifacts of one zip archive whose members make it a model of one of these kinds."""

    def detect(artifact: Artifact) -> str | None:
        paths = tuple(artifact.sizes)
        is_match = len(paths) == 1 and (
            zip_names.kind_of_model(zip_names.read(artifact, paths[0])) in kinds
        )
        return paths[0] if is_match else None

    return detect
