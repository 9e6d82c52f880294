"""Whether clients of one signature can call another at the same address."""

from __future__ import annotations

from deployments.registry.domain.signatures import ANY, Signature, Tensor


def incompatibilities(stable: Signature, new: Signature) -> list[str]:
    """Describe what breaks clients of `stable`; empty if compatible.

    A new output is compatible. A new input is not, because clients do not send it.
    """
    problems = [
        f"input {tensor.name} is new"
        for tensor in new.inputs
        if tensor.name not in {known.name for known in stable.inputs}
    ]
    problems += _removed_or_changed("input", stable.inputs, new.inputs)
    return problems + _removed_or_changed("output", stable.outputs, new.outputs)


def _removed_or_changed(
    kind: str, before: tuple[Tensor, ...], after: tuple[Tensor, ...]
) -> list[str]:
    new_tensors = {tensor.name: tensor for tensor in after}
    problems = []
    for tensor in before:
        new = new_tensors.get(tensor.name)
        if new is None:
            problems.append(f"{kind} {tensor.name} was removed")
        elif new.dtype != tensor.dtype:
            problems.append(f"{kind} {tensor.name} is {new.dtype}, was {tensor.dtype}")
        elif not _accepts(new.dims, tensor.dims):
            problems.append(
                f"{kind} {tensor.name} is {_format_dims(new)}, was {_format_dims(tensor)}"
            )
    return problems


def _accepts(new_dims: tuple[int, ...], old_dims: tuple[int, ...]) -> bool:
    """Return whether a model with the new dimensions takes what fitted the old ones. A dimension may become
    dynamic.
    """
    if len(new_dims) != len(old_dims):
        return False
    return all(new in (ANY, old) for new, old in zip(new_dims, old_dims, strict=True))


def _format_dims(tensor: Tensor) -> str:
    dims = ", ".join("any" if dim == ANY else str(dim) for dim in tensor.dims)
    return f"[{dims}]"
