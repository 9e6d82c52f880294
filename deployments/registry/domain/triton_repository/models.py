"""A model of a repository: its configuration and the files that it names, checked together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from deployments.registry.domain import triton_config
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.input_sizes import MAX_DIM
from deployments.registry.domain.not_servable import NotServable, quote
from deployments.registry.domain.signatures import ENSEMBLE
from deployments.registry.domain.triton_repository import backends, code, layout
from deployments.registry.domain.triton_repository.layout import ModelFolder

_LIBRARY_SUFFIXES: Final = (".so", ".dll", ".dylib")
_GPU: Final = ("KIND_GPU", "KIND_MODEL")


@dataclass(frozen=True, slots=True)
class RepositoryModel:
    """A model of a Triton repository. `names` are the models that its code may call; `notes` say what the
    uploader should know.
    """

    name: str
    folder: ModelFolder
    config: Any
    backend: str
    model_file: str
    versions: tuple[int, ...]
    environment: str = ""
    names: frozenset[str] = frozenset()

    @property
    def has_code(self) -> bool:
        return self.model_file.endswith(".py")

    @property
    def is_ensemble(self) -> bool:
        return self.backend == ENSEMBLE

    @property
    def states_gpu(self) -> bool:
        """Whether Triton fails instead of falling back to the CPU. An ensemble has no instances."""
        kinds = [group.Kind.Name(group.kind) for group in self.config.instance_group]
        return self.is_ensemble or (bool(kinds) and all(kind in _GPU for kind in kinds))

    def bytes_of_files(self, artifact: Artifact) -> int:
        """Sum the bytes of the served versions, without the environment."""
        own = [path for version in self.versions for path in self.folder.files_of(version).values()]
        return sum(artifact.sizes[path] for path in own)


def read(artifact: Artifact, folder: ModelFolder, name: str) -> RepositoryModel:
    """Read a model. Raises NotServable, whose message names the model."""
    try:
        return _read(artifact, folder, name)
    except NotServable as problem:
        raise NotServable(f"Model {name}: {problem}") from problem


def _read(artifact: Artifact, folder: ModelFolder, name: str) -> RepositoryModel:
    config = _config(artifact, folder)
    _refuse_libraries(config, folder)
    environment = code.environment_of(config)
    labels = [entry.label_filename for entry in config.output if entry.label_filename]
    folder = layout.without_versions(folder, [*labels, environment])
    is_ensemble = config.platform == ENSEMBLE or config.HasField("ensemble_scheduling")
    versions = _served(config, folder.versions or ((1,) if is_ensemble else ()))
    files = frozenset(folder.files_of(versions[-1]))
    backend = ENSEMBLE if is_ensemble else backends.backend_of(config, files)
    file = ""
    for version in versions:
        file = backends.model_file(config, backend, frozenset(folder.files_of(version)))
    if backend == backends.PYTHON and not file.endswith(".py"):
        raise NotServable("The file of a Python model is model.py. Remove default_model_filename.")
    _check_tensors(config)
    names = frozenset[str]()
    if file.endswith(".py"):
        tree = code.read_source(
            artifact, folder.files[f"{versions[-1]}/{file}"], needs_class=backend == backends.PYTHON
        )
        names = frozenset(code.strings_of(tree))
    if environment:
        if backend != backends.PYTHON:
            raise NotServable(
                f"The backend {backend} has no environment. Remove EXECUTION_ENV_PATH."
            )
        code.check_environment(artifact, folder.files.get(environment, ""), environment)
    return RepositoryModel(name, folder, config, backend, file, versions, environment, names)


def _config(artifact: Artifact, folder: ModelFolder) -> Any:
    if not folder.config:
        raise NotServable(
            "config.pbtxt is missing. Write one with name, backend, max_batch_size, input and output; "
            "a Triton that serves the model prints it at /v2/models/NAME/config."
        )
    size = artifact.sizes[folder.config]
    if size > triton_config.text.MAX_LENGTH:
        raise NotServable(f"{folder.config} has {size:,} bytes; the limit is 100,000.")
    try:
        return triton_config.parse(artifact.read(folder.config, 0, size).decode())
    except UnicodeDecodeError as error:
        raise NotServable(f"{folder.config} is not UTF-8 text. Save it again.") from error
    except triton_config.InvalidText as error:
        raise NotServable(f"{folder.config} is not valid. {error}") from error


def _refuse_libraries(config: Any, folder: ModelFolder) -> None:
    """Refuse libraries and agents: they would be loaded into the server, and no scan can read them."""
    libraries = [path for path in folder.files if path.lower().endswith(_LIBRARY_SUFFIXES)]
    if libraries or config.model_operations.op_library_filename or config.runtime:
        named = quote(libraries[0]) if libraries else "model_operations or runtime"
        raise NotServable(
            f"{named} is a library that Triton would load into the server. Use a backend of Triton's "
            "image, or the Python backend."
        )
    if config.model_repository_agents.agents:
        raise NotServable(
            "model_repository_agents change the files that were verified. Remove them."
        )


def _served(config: Any, versions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the versions that Triton loads, ascending: the highest, unless version_policy says otherwise."""
    if not versions:
        raise NotServable("There is no version. Put the model's file into a directory named 1.")
    policy = config.version_policy
    match policy.WhichOneof("policy_choice"):
        case "all":
            return versions
        case "specific":
            missing = sorted(set(policy.specific.versions) - set(versions))
            if missing or not policy.specific.versions:
                raise NotServable(
                    f"version_policy names version {missing[0] if missing else '(none)'}, which has no "
                    f"directory. There is {', '.join(map(str, versions))}."
                )
            return tuple(sorted(policy.specific.versions))
    return versions[-max(policy.latest.num_versions, 1) :]


def _check_tensors(config: Any) -> None:
    if config.max_batch_size < 0:
        raise NotServable("max_batch_size is negative. Use 0 for no batching.")
    for kind, entries in (("input", config.input), ("output", config.output)):
        if not entries:
            raise NotServable(
                f"config.pbtxt states no {kind}. Add it; a Triton that serves the model prints the "
                "complete configuration at /v2/models/NAME/config."
            )
        names = [entry.name for entry in entries]
        if "" in names or len(set(names)) < len(names):
            raise NotServable(f"Two of {kind} have the same name, or one has none. Rename it.")
        for entry in entries:
            _check_tensor(kind, entry)


def _check_tensor(kind: str, entry: Any) -> None:
    if entry.data_type == 0:
        raise NotServable(
            f"The {kind} {quote(entry.name)} has no data_type. Add one, as TYPE_FP32."
        )
    wrong = [dim for dim in entry.dims if dim == 0 or dim < -1 or dim > MAX_DIM]
    if wrong or not entry.dims:
        stated = f"the dimension {wrong[0]}" if wrong else "no dims"
        raise NotServable(
            f"The {kind} {quote(entry.name)} has {stated}. Use dims from 1 to {MAX_DIM:,}, or -1 for "
            "a dynamic one."
        )
