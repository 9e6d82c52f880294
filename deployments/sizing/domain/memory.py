"""How much memory one replica needs on each of its GPUs, term by term.

A file served by Triton: (weights + activations) x instances + runtime. It does not split over
GPUs: every GPU of a replica holds the whole model.

A language model served by vLLM, split over t GPUs:

    weights / t + KV cache / min(t, KV heads) + workspace + runtime

- weights: parameters x bits of the precision.
- KV cache: 2 (key and value) x layers x KV heads x head size x bytes x tokens, where tokens =
  context x concurrent requests. Without the architecture, a stated number of KiB for each token.
- workspace: 5 % of the weights for activations and sampling, at least 512 MiB, on every GPU.
- runtime: 1,024 MiB on every GPU for CUDA, NCCL and captured graphs.

vLLM takes only a part of the GPU, 90 % unless told otherwise, so that part has to hold the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from deployments.errors import Rejected

MIB: Final = 2**20
KIB: Final = 2**10
# Bits of one number.
BITS: Final = {"fp32": 32, "fp16": 16, "bf16": 16, "fp8": 8, "int8": 8, "int4": 4}
LANGUAGE_RUNTIME_MIB: Final = 1024
RUNTIME: Final = "Runtime"
_LEAST_WORKSPACE_MIB: Final = 512
_WORKSPACE_PERCENT: Final = 5
# Billions of parameters up to which a model of today (grouped-query attention) keeps at most so
# many KiB of keys and values for a token at 16 bits.
_KV_RULE: Final = ((2, 64), (10, 128), (20, 192), (40, 256), (80, 320))
_KV_BEYOND_KIB: Final = 512


@dataclass(frozen=True, slots=True)
class Term:
    """`parts`: over how many GPUs of a replica it may be divided at most; 1 is not at all.

    `spread_mib`: how much less it may be than `mib`.
    """

    name: str
    mib: int
    words: str
    parts: int = 1
    spread_mib: int = 0

    def mib_on(self, gpus: int) -> int:
        return -(-self.mib // min(gpus, self.parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """`usable_percent` of a GPU's memory is there for it. `words` say what it rests on."""

    terms: tuple[Term, ...]
    words: str
    is_measured: bool = False
    can_split: bool = False
    usable_percent: int = 100

    def mib_on(self, gpus: int) -> int:
        """On each of so many GPUs, rounded up to 16 MiB."""
        whole = sum(term.mib_on(gpus if self.can_split else 1) for term in self.terms)
        return -(-whole // 16) * 16

    def least_mib_on(self, gpus: int) -> int:
        """Where the range begins that `mib_on` ends."""
        return self.mib_on(gpus) - sum(term.spread_mib for term in self.terms) // 16 * 16

    def range_on(self, gpus: int) -> str:
        """1,024 or 600 to 1,024: MiB on each of so many GPUs."""
        least, most = self.least_mib_on(gpus), self.mib_on(gpus)
        return f"{least:,} to {most:,}" if least < most else f"{most:,}"

    def has_room(self, *, gpus: int, memory_mib: int) -> bool:
        return self.mib_on(gpus) * 100 <= memory_mib * self.usable_percent


@dataclass(frozen=True, slots=True, kw_only=True)
class FileModel:
    """What the file of a version told; None where it was not read."""

    weights_mib: int
    activations_mib: int
    runtime_mib: int
    # How much less the activations may be, and the sizes of the inputs that they are at.
    spread_mib: int = 0
    sizes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The most that one GPU held while `label` served alone on it."""

    label: str
    mib: int
    instances: int = 1
    # Of the version that was measured; None when it is not known.
    weights_mib: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    layers: int
    kv_heads: int
    head_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    parameters_millions: int
    precision: str = "bf16"
    kv_precision: str = "bf16"
    context_tokens: int = 4096
    concurrency: int = 8
    memory_percent: int = 90
    attention: Attention | None = None

    def __post_init__(self) -> None:
        found = {
            name: f"Use one of {', '.join(BITS)}."
            for name in ("precision", "kv_precision")
            if getattr(self, name) not in BITS
        }
        numbers = ("parameters_millions", "context_tokens", "concurrency")
        found |= {name: "Use 1 or more." for name in numbers if getattr(self, name) < 1}
        if not 10 <= self.memory_percent <= 99:
            found["memory_percent"] = "Use 10 to 99% of the GPU."
        if found:
            raise Rejected("Check " + ", ".join(sorted(found)) + ".", found)


def need_of_file(model: FileModel, *, instances: int = 1, measured: Measured | None = None) -> Need:
    """A measurement replaces the estimate; what this version has more of is added to it."""
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
        words="estimated from the file; not measured on a GPU yet",
    )


def _measured_need(model: FileModel, instances: int, measured: Measured) -> Need:
    terms = [Term("Measured", measured.mib, f"peak GPU memory while {measured.label} served")]
    if measured.weights_mib is not None and model.weights_mib > measured.weights_mib:
        more = model.weights_mib - measured.weights_mib
        terms.append(Term("Larger weights", more, f"compared with {measured.label}"))
    if instances > measured.instances:
        count = instances - measured.instances
        each = model.weights_mib + model.activations_mib
        terms.append(Term("Additional instances", count * each, f"{count} more than measured"))
    words = f"measured on a GPU that served {measured.label}; it replaces the estimate"
    return Need(terms=tuple(terms), words=words, is_measured=True)


def together(first: Need, others: Sequence[tuple[str, Need]]) -> Need:
    """All in one process, so that CUDA and its libraries count once. A sum of measurements is none:
    nobody has seen the models side by side.
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
    words = f"{count} models in one Triton, summed; {first.words}"
    return replace(first, terms=(*first.terms, *terms), words=words, is_measured=False)


def need_of_language_model(model: LanguageModel) -> Need:
    bits = BITS[model.precision]
    weights = -(-model.parameters_millions * 1_000_000 * bits // 8 // MIB)
    kv_bytes, kv_words = _kv_bytes_per_token(model)
    tokens = model.context_tokens * model.concurrency
    cache = -(-kv_bytes * tokens // MIB)
    workspace = max(_LEAST_WORKSPACE_MIB, weights * _WORKSPACE_PERCENT // 100)
    heads = model.attention.kv_heads if model.attention else 8
    load = f"{model.context_tokens:,} tokens x {model.concurrency:,} concurrent requests"
    return Need(
        terms=(
            Term("Weights", weights, _weights_words(model, bits), parts=64),
            Term("KV cache", cache, f"{kv_words} x {load}", parts=heads),
            Term("Workspace", workspace, "5% of the weights, at least 512 MiB, on every GPU"),
            Term(RUNTIME, LANGUAGE_RUNTIME_MIB, "CUDA, NCCL and graphs, on every GPU"),
        ),
        words=f"estimated; vLLM may use {model.memory_percent}% of each GPU",
        can_split=True,
        usable_percent=model.memory_percent,
    )


def _weights_words(model: LanguageModel, bits: int) -> str:
    return f"{model.parameters_millions:,} million parameters x {bits} bits"


def _kv_bytes_per_token(model: LanguageModel) -> tuple[int, str]:
    bits = BITS[model.kv_precision]
    if model.attention is None:
        kib = _kv_kib_by_rule(model.parameters_millions)
        words = f"about {kib * bits // 16} KiB per token, based on model size"
        return kib * KIB * bits // 16, words
    shape = model.attention
    count = 2 * shape.layers * shape.kv_heads * shape.head_size
    words = f"2 x {shape.layers} layers x {shape.kv_heads} heads x {shape.head_size} x {bits} bits"
    return count * bits // 8, words


def _kv_kib_by_rule(parameters_millions: int) -> int:
    for billions, kib in _KV_RULE:
        if parameters_millions <= billions * 1000:
            return kib
    return _KV_BEYOND_KIB
