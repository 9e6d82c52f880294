"""Read a config.pbtxt into settings. Nothing of it is dropped: what no setting states is `rest`, and each
part of it is a problem with its place and its fix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deployments.registry.domain.signatures import Backend, Signature, Tensor
from deployments.registry.domain.triton_config import (
    checks,
    differences,
    schema,
    settings_of_config,
    text,
    text_problems,
)
from deployments.registry.domain.triton_config.canonical import canonical
from deployments.registry.domain.triton_config.rendering import build
from deployments.registry.domain.triton_config.text import ConfigProblem, InvalidText, Path
from deployments.spec.domain.model_settings import ModelSettings
from portal.core.definitions import Rejected


@dataclass(frozen=True, slots=True)
class ConfigReading:
    """A config.pbtxt that was read. `settings` is None while a problem blocks. `rest` is a config.pbtxt of what
    no setting states.
    """

    settings: ModelSettings | None
    rest: str
    problems: tuple[ConfigProblem, ...]
    signature: Signature

    @property
    def blocking(self) -> tuple[ConfigProblem, ...]:
        return tuple(problem for problem in self.problems if problem.is_blocking)


def read(
    config_text: str,
    *,
    model: str = "",
    signature: Signature | None = None,
    base: ModelSettings | None = None,
) -> ConfigReading:
    """Read a config.pbtxt into settings. Without a signature, the text's own inputs and outputs are the
    model's.

    `base` has the settings that a text cannot state, the size of the response cache.
    """
    try:
        config = text.parse(config_text)
    except InvalidText as error:
        return ConfigReading(None, "", (error.problem,), signature or Signature((), ()))
    used = signature_of(config) if signature is None else signature
    theirs = canonical(config, used)
    places = text.places(config_text)
    base = base or ModelSettings()
    try:
        settings = ModelSettings.from_json(settings_of_config.settings_of(theirs, used, base))
    except Rejected as error:
        problems = tuple(_rejected(error.fields, places))
        return ConfigReading(None, "", problems, used)
    ours = canonical(build(model=model or config.name, signature=used, spec=settings), used)
    paths = list(differences.stated_only_by(theirs, ours))
    problems = tuple(
        _place(problem, path, places) for path, problem in _describe(paths, theirs, ours)
    )
    problems += tuple(text_problems.additions(config, used))
    if not any(problem.is_blocking for problem in problems):
        problems += tuple(
            _place(problem, text_problems.source_of(problem.setting)[1], places)
            for problem in checks.problems_with(used, settings)
        )
    is_blocked = any(problem.is_blocking for problem in problems)
    return ConfigReading(None if is_blocked else settings, _rest(theirs, paths), problems, used)


def signature_of(config: Any) -> Signature:
    """Return the inputs, outputs and batching that a configuration states itself."""
    is_batched = config.max_batch_size > 0
    backend = canonical(config, Signature((), ())).backend
    parameters = {name: config.parameters[name].string_value for name in sorted(config.parameters)}
    return Signature(
        inputs=_tensors(config.input, is_batched=is_batched),
        outputs=_tensors(config.output, is_batched=is_batched),
        max_batch_size=config.max_batch_size,
        backend=Backend(
            name=backend, model_file=config.default_model_filename, parameters=parameters
        ),
    )


def _tensors(entries: Any, *, is_batched: bool) -> tuple[Tensor, ...]:
    batch = (-1,) if is_batched else ()
    return tuple(
        Tensor(
            entry.name,
            schema.dtype_of(entry.data_type),
            (
                *batch,
                *(() if entry.HasField("reshape") and not entry.reshape.shape else entry.dims),
            ),
        )
        for entry in entries
    )


def _describe(paths: list[Path], theirs: Any, ours: Any) -> Iterator[tuple[Path, ConfigProblem]]:
    for path in paths:
        yield path, text_problems.describe(path, theirs, ours)


def _place(
    problem: ConfigProblem, path: Path, places: Mapping[Path, tuple[int, int]]
) -> ConfigProblem:
    """Set the problem's place to that of the path, or of the nearest part around it that the text has."""
    while path and path not in places:
        path = path[:-1]
    line, column = places.get(path, (0, 0))
    return replace(problem, line=line, column=column)


def _rejected(
    fields: Mapping[str, str], places: Mapping[Path, tuple[int, int]]
) -> Iterator[ConfigProblem]:
    for field, fix in fields.items():
        label, path = text_problems.source_of(field)
        yield _place(ConfigProblem(f"{label}:", fix, setting=field), path, places)


def _rest(theirs: Any, paths: list[Path]) -> str:
    """Return the fields at the paths; an element of a list or map with all of its content."""
    rest = schema.new_config()
    for path in paths:
        source, target = theirs, rest
        for name in path[:-1]:
            field = source.DESCRIPTOR.fields_by_name[name]
            if field.is_repeated or field.message_type is None:
                break
            source, target = getattr(source, str(name)), getattr(target, str(name))
        else:
            name = path[-1]
        text.partial_copy(source, target, str(name))
    return text.write(rest)
