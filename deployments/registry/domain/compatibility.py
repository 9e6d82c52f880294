"""Whether clients of one signature can go on with another behind the same address."""

from __future__ import annotations

from deployments.registry.domain.signatures import ANY, Signature, Tensor


def breaks(stable: Signature, new: Signature) -> list[str]:
    """What clients of `stable` would trip over, in words; empty when they notice nothing.

    Outputs may be added; an input may not, because no client sends it.
    """
    found = [
        f"input {tensor.name} is new"
        for tensor in new.inputs
        if tensor.name not in {known.name for known in stable.inputs}
    ]
    found += _lost("input", stable.inputs, new.inputs)
    return found + _lost("output", stable.outputs, new.outputs)


def _lost(kind: str, before: tuple[Tensor, ...], after: tuple[Tensor, ...]) -> list[str]:
    now = {tensor.name: tensor for tensor in after}
    found = []
    for tensor in before:
        other = now.get(tensor.name)
        if other is None:
            found.append(f"{kind} {tensor.name} was removed")
        elif other.dtype != tensor.dtype:
            found.append(f"{kind} {tensor.name} is {other.dtype}, was {tensor.dtype}")
        elif not _takes(other.dims, tensor.dims):
            found.append(f"{kind} {tensor.name} is {_words(other)}, was {_words(tensor)}")
    return found


def _takes(now: tuple[int, ...], before: tuple[int, ...]) -> bool:
    """A size that became free still takes what was sent before."""
    if len(now) != len(before):
        return False
    return all(new in (ANY, old) for new, old in zip(now, before, strict=True))


def _words(tensor: Tensor) -> str:
    dims = ", ".join("any" if dim == ANY else str(dim) for dim in tensor.dims)
    return f"[{dims}]"
