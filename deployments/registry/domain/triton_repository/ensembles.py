"""The steps of an ensemble against the models that they name, by the rules of Triton.

Every tensor of an ensemble is written once, by a request or by a step, and every step's inputs are
tensors that something writes. Data types and dimensions agree on both ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from deployments.registry.domain.not_servable import NotServable, quote
from deployments.registry.domain.triton_config import schema
from deployments.registry.domain.triton_repository.models import RepositoryModel

_ANY: Final = -1
# dtype and dims with the batch dimension.
_Shape = tuple[str, tuple[int, ...]]


def check(ensemble: RepositoryModel, models: Mapping[str, RepositoryModel]) -> None:
    """Check an ensemble. Raises NotServable for the first problem."""
    problem = next(_problems(ensemble, models), "")
    if problem:
        raise NotServable(f"Ensemble {ensemble.name}: {problem}")


def list_used_models(ensemble: RepositoryModel) -> list[str]:
    """Return the names of the models of its steps, in order."""
    return [step.model_name for step in ensemble.config.ensemble_scheduling.step]


def check_nesting(models: Mapping[str, RepositoryModel]) -> None:
    """Check that no ensemble contains itself. Raises NotServable."""
    nested = {
        name: set(list_used_models(model)) for name, model in models.items() if model.is_ensemble
    }
    while nested:
        leaves = [name for name, parts in nested.items() if not parts & nested.keys()]
        if not leaves:
            listed = ", ".join(sorted(nested))
            raise NotServable(f"Ensembles contain each other: {listed}. Remove the circle.")
        for name in leaves:
            del nested[name]


def _problems(ensemble: RepositoryModel, models: Mapping[str, RepositoryModel]) -> Iterator[str]:
    config = ensemble.config
    steps = config.ensemble_scheduling.step
    if not steps:
        yield "it has no steps. Add ensemble_scheduling with a step for each model."
        return
    if config.instance_group:
        yield "an ensemble has no instances of its own. Remove instance_group."
    for step in steps:
        yield from _problems_of_step(config, step, models)
    yield from _problems_of_tensors(config, models)


def _problems_of_step(
    config: Any, step: Any, models: Mapping[str, RepositoryModel]
) -> Iterator[str]:
    model = models.get(step.model_name)
    if model is None:
        there = ", ".join(sorted(models))
        yield (
            f"its step names the model {quote(step.model_name)}, which is not in the repository. Add "
            f"it, or name one of {there}."
        )
        return
    if step.model_version not in (0, _ANY, *model.versions):
        yield (
            f"its step names version {step.model_version} of {model.name}, which is not served. Use "
            "-1 for the newest."
        )
    most = model.config.max_batch_size
    if config.max_batch_size > most:
        yield (
            f"its max_batch_size is {config.max_batch_size}, and that of {model.name} is {most}. Use "
            f"at most {most} in the ensemble."
        )
    inputs = {entry.name for entry in model.config.input}
    required = {entry.name for entry in model.config.input if not entry.optional}
    outputs = {entry.name for entry in model.config.output}
    yield from _problems_of_map(step.input_map, "input", model.name, inputs)
    yield from _problems_of_map(step.output_map, "output", model.name, outputs)
    for name in sorted(required - set(step.input_map)):
        yield (
            f"its step {model.name} has no tensor for the input {quote(name)}. Add it to the "
            "input_map."
        )


def _problems_of_map(
    mapping: Mapping[str, str], kind: str, model: str, known: set[str]
) -> Iterator[str]:
    for name in sorted(set(mapping) - known):
        yield (
            f"its {kind}_map names {quote(name)}, and {model} has no such {kind}. It has "
            f"{', '.join(sorted(known))}."
        )
    if not mapping:
        yield f"the {kind}_map of its step {model} is empty. Add the {kind}s of {model}."


def _problems_of_tensors(config: Any, models: Mapping[str, RepositoryModel]) -> Iterator[str]:
    written: dict[str, tuple[str, _Shape]] = {
        entry.name: ("a request", _shape(config, entry)) for entry in config.input
    }
    read: list[tuple[str, str, _Shape]] = []
    needs: list[tuple[set[str], set[str]]] = []
    for step in config.ensemble_scheduling.step:
        model = models[step.model_name].config
        inputs = {entry.name: entry for entry in model.input}
        outputs = {entry.name: entry for entry in model.output}
        for name, tensor in sorted(step.output_map.items()):
            if tensor in written:
                yield (
                    f"the tensor {quote(tensor)} is written by {written[tensor][0]} and by "
                    f"{step.model_name}. Give each a name of its own."
                )
            written[tensor] = (step.model_name, _shape(model, outputs[name]))
        read += [
            (tensor, f"{step.model_name} ({name})", _shape(model, inputs[name]))
            for name, tensor in sorted(step.input_map.items())
        ]
        needs.append((set(step.input_map.values()), set(step.output_map.values())))
    read += [
        (entry.name, "the ensemble's output", _shape(config, entry)) for entry in config.output
    ]
    yield from _disagreements(written, read)
    yield from _circles({entry.name for entry in config.input}, needs)


def _disagreements(
    written: Mapping[str, tuple[str, _Shape]], read: list[tuple[str, str, _Shape]]
) -> Iterator[str]:
    for tensor, reader, shape in read:
        if tensor not in written:
            yield (
                f"nothing writes the tensor {quote(tensor)}, which {reader} reads. Add it to the "
                "ensemble's input or to an output_map."
            )
            continue
        writer, given = written[tensor]
        if given[0] != shape[0]:
            yield (
                f"the tensor {quote(tensor)} is {given[0]} from {writer} and {shape[0]} for {reader}. "
                "Use one data type."
            )
        elif not _fits(given[1], shape[1]):
            yield (
                f"the tensor {quote(tensor)} has the dims {list(given[1])} from {writer} and "
                f"{list(shape[1])} for {reader}, with the batch dimension. Use the same."
            )


def _circles(available: set[str], needs: list[tuple[set[str], set[str]]]) -> Iterator[str]:
    waiting = list(needs)
    known = set(available)
    while ready := [pair for pair in waiting if pair[0] <= known]:
        waiting = [pair for pair in waiting if pair not in ready]
        known |= {tensor for _, outputs in ready for tensor in outputs}
    if waiting:
        tensors = sorted(set().union(*(outputs for _, outputs in waiting)))
        yield f"its steps wait for each other: {', '.join(tensors[:5])}. Remove the circle."


def _shape(config: Any, entry: Any) -> _Shape:
    batch = (_ANY,) if config.max_batch_size > 0 else ()
    return schema.dtype_of(entry.data_type), (*batch, *entry.dims)


def _fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(
        _ANY in pair or pair[0] == pair[1] for pair in zip(one, other, strict=True)
    )
