"""Inputs and outputs of a prediction, as MLflow's callers and its command line give and take them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway_client.errors import InvalidInput
from slipway_client.types import Tensor


def inputs_of(inputs: Any, tensors: Sequence[Tensor]) -> dict[str, Any]:
    """Return the inputs by name. A DataFrame has a column for each input, or is the matrix of the only one. Raises
    InvalidInput.
    """
    if isinstance(inputs, Mapping):
        return dict(inputs)
    names = [tensor.name for tensor in tensors]
    if (
        hasattr(inputs, "columns")
        and names
        and set(names) <= {str(name) for name in inputs.columns}
    ):
        return {tensor.name: _column(inputs[tensor.name].tolist(), tensor) for tensor in tensors}
    if len(names) != 1:
        raise InvalidInput(f"Give the inputs by name: {', '.join(names) or 'unknown'}.")
    return {names[0]: inputs.to_numpy() if hasattr(inputs, "to_numpy") else inputs}


def _column(cells: list[Any], tensor: Tensor) -> list[Any]:
    """Cells are rows of the input; plain values get the dimension that a row has."""
    has_rows = bool(cells) and isinstance(cells[0], list)
    return cells if has_rows or len(tensor.dims) < 2 else [[cell] for cell in cells]


class PredictionsByName(dict[str, Any]):
    """Outputs by name. MLflow's command line calls `to_json`."""

    def to_json(self, path: str | None = None) -> str | None:
        """Return the text, or None after it was written to `path`."""
        plain = {
            name: item.tolist() if hasattr(item, "tolist") else item for name, item in self.items()
        }
        text = json.dumps(plain)
        if path is None:
            return text
        Path(path).write_text(text)
        return None
