"""The facts read from an ONNX file, passed as JSON from the sandbox to the worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployments.registry.domain import signatures
from deployments.registry.domain.signatures import Signature


@dataclass(frozen=True, slots=True)
class OnnxFacts:
    """The facts of an ONNX model. `external_files` hold tensors, relative to the graph's folder;
    `external_bytes` is their size.
    """

    signature: Signature
    weights_bytes: int
    parameter_count: int
    custom_domains: tuple[str, ...]
    external_files: tuple[str, ...] = ()
    external_bytes: int = 0

    @property
    def opset(self) -> int:
        """The version of the standard operators; 0 if the file does not state one."""
        return int(self.signature.facts["opset"].get("ai.onnx", 0))

    def to_json(self) -> dict[str, Any]:
        return {
            "signature": self.signature.to_json(),
            "weights_bytes": self.weights_bytes,
            "parameter_count": self.parameter_count,
            "custom_domains": list(self.custom_domains),
            "external_files": list(self.external_files),
            "external_bytes": self.external_bytes,
        }


def from_json(data: Mapping[str, Any]) -> OnnxFacts:
    return OnnxFacts(
        signature=signatures.from_json(data["signature"]),
        weights_bytes=data["weights_bytes"],
        parameter_count=data["parameter_count"],
        custom_domains=tuple(data["custom_domains"]),
        external_files=tuple(data["external_files"]),
        external_bytes=data["external_bytes"],
    )
