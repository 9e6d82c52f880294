"""The memory that a replica needs on each of its GPUs, term by term.

A file served by Triton: (weights + activations) x instances + runtime. It does not split over
GPUs: every GPU of a replica holds the whole model.

A language model, split over t GPUs:

    weights / t + KV cache / min(t, KV heads) + workspace + runtime

- weights: parameters x bits of the precision.
- KV cache: 2 (key and value) x layers x KV heads x head size x bytes x tokens, where tokens =
  context x concurrent requests. Without the architecture, a fixed number of KiB per token; with
  multi-head latent attention one compressed vector instead of key and value.
- workspace: 5 % of the weights for activations and sampling, at least 512 MiB, on every GPU.
- runtime: 1,024 MiB on every GPU for CUDA, NCCL and captured graphs.

The server uses a fraction of each GPU, 90% by default, and the sum has to fit into it. SGLang's
`mem_fraction_static` is without the workspace, so with it the sum is an upper bound.
Copies of the model (data parallel) divide the GPUs among them; each has weights and a cache of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from portal.core.definitions import Rejected

MIB: Final = 2**20
KIB: Final = 2**10
# Bits of one number.
BITS: Final = {"fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
LANGUAGE_RUNTIME_MIB: Final = 1024
RUNTIME: Final = "Runtime"
_LEAST_WORKSPACE_MIB: Final = 512
_WORKSPACE_PERCENT: Final = 5
# (billions of parameters, KiB of keys and values per token at 16 bits): upper bounds for current
# models with grouped-query attention.
_KV_RULE: Final = ((2, 64), (10, 128), (20, 192), (40, 256), (80, 320))
_KV_BEYOND_KIB: Final = 512


@dataclass(frozen=True, slots=True)
class Term:
    """A part of the needed memory. `parts` is the maximum number of GPUs that share it; 1 means that it is not
    split.

    The actual value is between `mib - spread_mib` and `mib`.
    """

    name: str
    mib: int
    detail: str
    parts: int = 1
    spread_mib: int = 0

    def mib_on(self, gpus: int) -> int:
        return -(-self.mib // min(gpus, self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The memory that a model needs. `usable_percent` of each GPU's memory is available. `basis` names the
    source of the figures. `terms` are those of one of the `copies` of the model that divide the GPUs among
    them.
    """

    terms: tuple[Term, ...]
    basis: str
    is_measured: bool = False
    can_split: bool = False
    usable_percent: int = 100
    copies: int = 1

    def mib_on(self, gpus: int) -> int:
        """Return MiB on each of `gpus` GPUs, rounded up to 16 MiB."""
        parts = max(1, gpus // self.copies) if self.can_split else 1
        whole = sum(term.mib_on(parts) for term in self.terms)
        return -(-whole // 16) * 16

    def min_mib_on(self, gpus: int) -> int:
        """Return the lower bound of the range whose upper bound is `mib_on`."""
        return self.mib_on(gpus) - sum(term.spread_mib for term in self.terms) // 16 * 16

    def range_on(self, gpus: int) -> str:
        """Return MiB on each of `gpus` GPUs, as "1,024" or "600 to 1,024"."""
        low, high = self.min_mib_on(gpus), self.mib_on(gpus)
        return f"{low:,} to {high:,}" if low < high else f"{high:,}"

    def can_use(self, gpus: int) -> bool:
        """Whether each copy gets the same number of GPUs."""
        return gpus % self.copies == 0

    def has_room(self, *, gpus: int, memory_mib: int) -> bool:
        return self.can_use(gpus) and self.mib_on(gpus) * 100 <= memory_mib * self.usable_percent


@dataclass(frozen=True, slots=True, kw_only=True)
class FileModel:
    """The memory facts of an uploaded file."""

    weights_mib: int
    activations_mib: int
    runtime_mib: int
    # The activations are between activations_mib - spread_mib and activations_mib, at these sizes.
    spread_mib: int = 0
    sizes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMemory:
    """The peak memory of a GPU on which only `label` was served."""

    label: str
    mib: int
    instances: int = 1
    # Of the measured version; None means unknown.
    weights_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    layers: int
    kv_heads: int
    head_size: int
    # Key and value, or one compressed vector.
    vectors: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """A language model to size. `weights_mib` replaces parameters x bits where it was read from the files,
    `kv_kib_per_token` (at 16 bits) the rule for a KV cache whose attention is not known.
    """

    parameters_millions: int
    precision: str = "bf16"
    kv_precision: str = "bf16"
    context_tokens: int = 4096
    concurrency: int = 8
    memory_percent: int = 90
    data_parallel: int = 1
    attention: Attention | None = None
    weights_mib: int = 0
    kv_kib_per_token: int = 0

    def __post_init__(self) -> None:
        problems = {
            name: f"Use one of {', '.join(BITS)}."
            for name in ("precision", "kv_precision")
            if getattr(self, name) not in BITS
        }
        numbers = ("parameters_millions", "context_tokens", "concurrency", "data_parallel")
        problems |= {name: "Use 1 or more." for name in numbers if getattr(self, name) < 1}
        if not 10 <= self.memory_percent <= 99:
            problems["memory_percent"] = "Use 10 to 99% of the GPU."
        if problems:
            raise Rejected("Check " + ", ".join(sorted(problems)) + ".", problems)


def need_of_file(
    model: FileModel, *, instances: int = 1, measured: MeasuredMemory | None = None
) -> Need:
    """Return the memory that a file's model needs. A measurement replaces the estimate; growth since the
    measured version is added.
    """
    if measured is not None:
        return _measured_need(model, instances, measured)
    copies = f", {instances} instances" if instances > 1 else ""
    return Need(
        terms=(
            Term("Weights", model.weights_mib * instances, f"from the file{copies}"),
            Term(
                "Activations",
                model.activations_mib * instances,
                f"at {model.sizes or 'the largest batch'}{copies}",
                spread_mib=model.spread_mib * instances,
            ),
            Term(RUNTIME, model.runtime_mib, "CUDA, its libraries, Triton"),
        ),
        basis="estimated from the file; not measured on a GPU yet",
    )


def _measured_need(model: FileModel, instances: int, measured: MeasuredMemory) -> Need:
    terms = [Term("Measured", measured.mib, f"peak GPU memory while {measured.label} served")]
    if measured.weights_mib is not None and model.weights_mib > measured.weights_mib:
        more = model.weights_mib - measured.weights_mib
        terms.append(Term("Larger weights", more, f"compared with {measured.label}"))
    if instances > measured.instances:
        count = instances - measured.instances
        each = model.weights_mib + model.activations_mib
        terms.append(Term("Additional instances", count * each, f"{count} more than measured"))
    basis = f"measured on a GPU that served {measured.label}; it replaces the estimate"
    return Need(terms=tuple(terms), basis=basis, is_measured=True)


def combine(first: Need, others: Sequence[tuple[str, Need]]) -> Need:
    """Add the needs of all models in one process, where the runtime counts once. The sum of measurements is an
    estimate: the models were not measured together.
    """
    if not others:
        return first
    terms = [
        Term(
            label,
            sum(term.mib for term in need.terms if term.name != RUNTIME),
            f"multi-model; {'measured alone' if need.is_measured else 'estimated from its file'}",
            spread_mib=sum(term.spread_mib for term in need.terms),
        )
        for label, need in others
    ]
    count = len(others) + 1
    basis = f"{count} models in one Triton, summed; {first.basis}"
    return replace(first, terms=(*first.terms, *terms), basis=basis, is_measured=False)


def need_of_language_model(model: LanguageModel) -> Need:
    bits = BITS[model.precision]
    weights = model.weights_mib or -(-model.parameters_millions * 1_000_000 * bits // 8 // MIB)
    kv_bytes, kv_detail = _kv_bytes_per_token(model)
    tokens = model.context_tokens * model.concurrency
    cache = -(-kv_bytes * tokens // MIB)
    workspace = max(_LEAST_WORKSPACE_MIB, weights * _WORKSPACE_PERCENT // 100)
    heads = model.attention.kv_heads if model.attention else 8
    load = f"{model.context_tokens:,} tokens x {model.concurrency:,} concurrent requests"
    return Need(
        terms=(
            Term("Weights", weights, _describe_weights(model, bits), parts=64),
            Term("KV cache", cache, f"{kv_detail} x {load}", parts=heads),
            Term("Workspace", workspace, "5% of the weights, at least 512 MiB, on every GPU"),
            Term(RUNTIME, LANGUAGE_RUNTIME_MIB, "CUDA, NCCL and graphs, on every GPU"),
        ),
        basis=f"estimated; the server may use {model.memory_percent}% of each GPU",
        can_split=True,
        usable_percent=model.memory_percent,
        copies=model.data_parallel,
    )


def _describe_weights(model: LanguageModel, bits: int) -> str:
    if model.weights_mib:
        return f"{model.parameters_millions:,} million parameters, from the headers of the files"
    return f"{model.parameters_millions:,} million parameters x {bits} bits"


def _kv_bytes_per_token(model: LanguageModel) -> tuple[int, str]:
    bits = BITS[model.kv_precision]
    if model.attention is None:
        kib = model.kv_kib_per_token or _kv_kib_by_rule(model.parameters_millions)
        basis = "declared" if model.kv_kib_per_token else "based on model size"
        detail = f"about {kib * bits // 16} KiB per token, {basis}"
        return kib * KIB * bits // 16, detail
    attention = model.attention
    count = attention.vectors * attention.layers * attention.kv_heads * attention.head_size
    detail = f"{attention.vectors} x {attention.layers} layers x {attention.kv_heads} heads x {attention.head_size} x {bits} bits"
    return count * bits // 8, detail


def _kv_kib_by_rule(parameters_millions: int) -> int:
    for billions, kib in _KV_RULE:
        if parameters_millions <= billions * 1000:
            return kib
    return _KV_BEYOND_KIB
