"""The common part of formats whose inputs and outputs the uploader declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.registry.domain import object_keys
from deployments.registry.domain.formats.format import Context, Inspection
from deployments.registry.domain.not_servable import NeedsDeclaration, quote
from deployments.registry.domain.signatures import ANY, Backend, Signature
from deployments.sizing.domain.onnx import VramEstimate, estimate_vram

# The fact of a signature that the uploader declared; the page says so.
DECLARED = "declared_by_uploader"


def inspection(
    context: Context,
    backend: Backend,
    *,
    weights_bytes: int,
    facts: Mapping[str, Any],
    details: Mapping[str, str],
) -> Inspection:
    """Describe one file. The declared tensors are the signature; rows are combined only where that is declared.

    Raises NeedsDeclaration.
    """
    tensors = (*context.inputs, *context.outputs)
    batch = context.max_batch_size if context.supports_batching else 0
    fixed = [tensor.name for tensor in tensors if tensor.dims[0] != ANY]
    if batch and fixed:
        raise NeedsDeclaration(
            f"Batching is declared, but the first dimension of {quote(fixed[0])} is not -1. Declare it, or "
            "declare that the model takes no batches."
        )
    batching = (
        f"up to {batch}: declared by the uploader."
        if batch
        else "off: the file does not say whether rows may be combined. Declare it to turn it on."
    )
    signature = Signature(
        inputs=context.inputs,
        outputs=context.outputs,
        max_batch_size=batch,
        facts={"batching": batching, DECLARED: True, **facts},
        backend=backend,
    )
    rows = sum(tensor.bytes_per_item(is_batched=bool(batch)) for tensor in tensors) * max(batch, 1)
    estimate = estimate_vram(weights_bytes=weights_bytes, live_bytes=rows)
    lines = {
        "Inputs and outputs": f"{len(context.inputs):,} in, {len(context.outputs):,} out, declared by the uploader",
        "Runtime": "not loaded here",
        "Batching": batching,
        "GPU memory": _describe(estimate),
    }
    target = object_keys.model_file_key("", context.model, backend.model_file)
    return Inspection(signature, estimate, {**lines, **details}, layout={target: context.main})


def require(context: Context, what: str) -> None:
    """Require declared inputs and outputs. Raises NeedsDeclaration without them; `what` is what the file says."""
    if not context.inputs or not context.outputs:
        raise NeedsDeclaration(
            f"{what} Declare inputs and outputs with type and dimensions, and it is verified again."
        )


def _describe(estimate: VramEstimate) -> str:
    return (
        f"at least {estimate.total_mib - estimate.spread_mib:,} MiB: weights {estimate.weights_mib:,}, inputs and "
        f"outputs {estimate.activations_mib:,}, runtime {estimate.runtime_mib:,}. Activations inside the model "
        "are not known."
    )
