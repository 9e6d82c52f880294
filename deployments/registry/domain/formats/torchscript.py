"""TorchScript: a zip archive of code, constants and tensors, for Triton's PyTorch backend.

The archive has the names of `forward`'s arguments, and neither data types nor dimensions: the uploader declares
them. Rules of the names: triton-inference-server/pytorch_backend, src/pt/model_instance_state.cc
(`ValidateInputs`, `GetNamingConvention`). Custom operators are found by the scan and need a release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deployments.registry.domain.artifacts import zip_names
from deployments.registry.domain.formats import declared_models
from deployments.registry.domain.formats.format import (
    ArtifactReading,
    Context,
    Format,
    Inspection,
    zip_of,
)
from deployments.registry.domain.not_servable import (
    NeedsDeclaration,
    NotServable,
    printable,
    quote,
)
from deployments.registry.domain.signatures import Backend, Tensor, parameter_facts

_TASK: Final = "deployments.registry.domain.torchscript.reading:read"
_INDEXED: Final = re.compile(r".+?__([0-9]{1,3})")
# The backend maps no others to types of PyTorch (src/libtorch_utils.cc, ConvertDataTypeToTorchType).
_DTYPES: Final = frozenset(
    {"BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"}
)


def _conclude(facts: Mapping[str, Any], context: Context) -> Inspection:
    arguments: Sequence[Mapping[str, str]] = facts["arguments"]
    names = [str(row["name"]) for row in arguments]
    others = [row for row in arguments if row["type"] != "Tensor"]
    if others:
        raise NotServable(
            f"The argument {quote(others[0]['name'])} of forward is {quote(others[0]['type'])}; this portal "
            "serves tensors only. Wrap the model in one whose forward takes tensors."
        )
    called = f"forward({', '.join(map(printable, names))})"
    declared_models.require(context, f"{called[:300]} states no data types and dimensions.")
    _check_names(context.inputs, names)
    if len(context.outputs) > len(facts["returns"]) or facts["returns"] == ["None"]:
        raise NeedsDeclaration(
            f"{len(context.outputs):,} outputs are declared, and forward returns {len(facts['returns']):,}."
        )
    wrong = [t for t in (*context.inputs, *context.outputs) if t.dtype not in _DTYPES]
    if wrong:
        raise NeedsDeclaration(
            f"Triton's PyTorch backend has no {wrong[0].dtype} ({quote(wrong[0].name)}). Use one of "
            f"{', '.join(sorted(_DTYPES))}."
        )
    return declared_models.inspection(
        context,
        Backend(name="pytorch", model_file="model.pt"),
        weights_bytes=int(facts["weights_bytes"]),
        facts=parameter_facts(facts["parameters"]),
        details={
            "Runtime": f"Triton's PyTorch backend loads it and calls {called}; not loaded here"
        },
    )


def _check_names(inputs: Sequence[Tensor], names: Sequence[str]) -> None:
    """Check the names of inputs: either all are arguments of forward, or all have the form INPUT__0."""
    declared = [tensor.name for tensor in inputs]
    if len(declared) != len(names):
        raise NeedsDeclaration(
            f"{len(declared):,} inputs are declared, and forward takes {len(names):,}: {', '.join(names)[:300]}."
        )
    if set(declared) == set(names):
        return
    matches = [_INDEXED.fullmatch(name) for name in declared]
    indices = sorted(int(match[1]) for match in matches if match)
    if indices != list(range(len(names))):
        raise NeedsDeclaration(
            f"The inputs {', '.join(declared)[:300]} are not the arguments of forward "
            f"({', '.join(names)[:300]}). Use these names, or INPUT__0, INPUT__1 in their order."
        )


TORCHSCRIPT: Final = Format(
    key="torchscript",
    name="TorchScript",
    detect=zip_of(zip_names.TORCH_SCRIPT),
    endings=(".pt",),
    is_declared=True,
    reading=ArtifactReading(_TASK, _conclude),
)
