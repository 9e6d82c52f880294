"""The GPU shares of the page: ranked by the sizing, and the rejected ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal

from deployments.changes.web import request_body
from deployments.models import ModelVersion
from deployments.preflight.services import gpu_advice
from deployments.preflight.services.gpu_advice import Load
from deployments.sizing.domain import declared_size
from deployments.sizing.domain.language_models import WEIGHT_PRECISION
from deployments.sizing.domain.memory import LanguageModel, Term
from deployments.sizing.domain.ranking import Advice, Choice
from deployments.spec.domain.engines import LLM_ENGINES
from deployments.spec.domain.serving_spec import AdditionalModel
from fleet.capacity.selectors.capacity import GpuShare
from fleet.clusters.selectors.clusters import ClusterInfo
from portal.core.definitions import Rejected

_KV_PRECISION = {"auto": "bf16"}
_DEFAULT_CONTEXT = 4096
_DEFAULT_CONCURRENCY = 8
_MAX_ELSEWHERE = 6


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A GPU share in the list. `value` is empty for a share that this cluster does not have; `headroom` is None if
    the need is unknown.
    """

    title: str
    instance_type: str
    value: str
    is_chosen: bool
    is_off: bool
    is_recommended: bool
    memory_mib: int
    headroom: float | None
    usd_per_hour_amount: Decimal | None
    month_amount: Decimal | None
    explanation: str
    free_now: int | None
    free_label: str
    tainted_label: str
    is_simulated: bool
    # No such node runs, but Karpenter starts one.
    is_started: bool = False


@dataclass(frozen=True, slots=True)
class SizingCard:
    """The GPU memory that the model needs, and why. `replicas` is for the expected load."""

    needed_mib: int
    min_mib: int
    terms: Sequence[Term]
    basis: str
    is_measured: bool
    replicas: int
    load_note: str


def value_of(share: GpuShare) -> str:
    return f"{share.instance_type}|{share.gpu_resource}|{share.gpus}"


def advice_of(
    *,
    version: ModelVersion | None,
    cluster: ClusterInfo | None,
    shares: list[GpuShare],
    data: Mapping[str, str],
) -> Advice | None:
    """Return the sizing advice for the version on the cluster. None until the memory need is known."""
    if version is None or cluster is None:
        return None
    is_llm = data.get("engine") in LLM_ENGINES
    language = _language(data, version) if is_llm else None
    if is_llm and language is None:
        return None
    load = Load(
        requests_per_second=_number(data.get("requests_per_second", "")),
        instances=_number(data.get("instances_per_gpu", "")) or 1,
        max_replicas=_number(data.get("max_replicas", "")) or 1,
        language=language,
        additional_models=_additional_models(data),
    )
    try:
        return gpu_advice.advise_version(version=version, cluster=cluster, load=load, shares=shares)
    except Rejected:
        # The error shows at the field of the additional models; size the model alone.
        load = replace(load, additional_models=())
        return gpu_advice.advise_version(version=version, cluster=cluster, load=load, shares=shares)


def _additional_models(data: Mapping[str, str]) -> tuple[AdditionalModel, ...]:
    """Return the additional models, without labels that name none; the spec refuses those at their field."""
    additional = []
    for label in (data.get(name, "") for name in request_body.ADDITIONAL_MODELS):
        model, _, version = label.rpartition(":")
        with suppress(Rejected):
            additional.append(AdditionalModel(model=model, version=_number(version) or 0))
    return tuple(additional)


def default_share(advice: Advice | None, shares: Sequence[GpuShare]) -> str:
    """Return the recommended share; else one that can still be requested; else the cheapest."""
    if advice is None:
        return value_of(shares[0]) if shares else ""
    allowed = [*advice.ranked, *(choice for choice in advice.rejected if choice.can_choose)]
    return _value(allowed[0]) if allowed else ""


def rows_of(
    advice: Advice | None, shares: Sequence[GpuShare], *, chosen: str
) -> tuple[list[ShareRow], list[ShareRow]]:
    """Return the shares of this cluster, ranked and rejected, and shares that it does not have."""
    if advice is None:
        return [_plain(share, chosen) for share in shares], []
    known = {value_of(share): share for share in shares}
    soft = [choice for choice in advice.rejected if choice.can_choose]
    hard = [choice for choice in advice.rejected if not choice.can_choose]
    here = [choice for choice in hard if choice.offer.missing is None]
    elsewhere = [choice for choice in hard if choice.offer.missing is not None]
    return (
        [_row(choice, known, chosen) for choice in (*advice.ranked, *soft, *here)],
        [_row(choice, known, chosen) for choice in elsewhere[:_MAX_ELSEWHERE]],
    )


def card_of(advice: Advice | None) -> SizingCard | None:
    if advice is None:
        return None
    need = advice.need
    best = advice.recommended
    gpus = best.offer.gpus if best else 1
    return SizingCard(
        needed_mib=need.mib_on(gpus),
        min_mib=need.min_mib_on(gpus),
        terms=need.terms,
        basis=need.basis,
        is_measured=need.is_measured,
        replicas=advice.demand.replicas,
        load_note=_load_note(advice),
    )


def _load_note(advice: Advice) -> str:
    demand = advice.demand
    if not demand.requests_per_second:
        return ""
    if not demand.busy_us:
        return "Latency of this model is not measured yet. Start with one replica."
    each = f"{demand.busy_us / 1000:,.1f} ms of GPU time per request, measured"
    return f"{demand.replicas} replica{'' if demand.replicas == 1 else 's'}: {each}, each at most 70% busy."


def _language(data: Mapping[str, str], version: ModelVersion) -> LanguageModel | None:
    """Return the language model of the form. None if its size is not known.

    Empty fields have the values of the version: declared for external weights, else read from it.
    """
    declared = declared_size.from_version(version.source_uri, version.metadata, version.signature)
    typed = _number(data.get("llm_parameters_millions", "").replace(",", ""))
    millions = typed or declared.parameters_millions
    if not millions:
        return None
    kv = data.get("llm_kv_cache_dtype", "auto")
    is_converted = data.get("llm_quantization", "") in WEIGHT_PRECISION
    is_of_version = millions == declared.parameters_millions
    try:
        return LanguageModel(
            parameters_millions=millions,
            precision=WEIGHT_PRECISION.get(data.get("llm_quantization", ""), declared.precision),
            kv_precision=_KV_PRECISION.get(kv, kv.split("_")[0]),
            context_tokens=_number(data.get("llm_max_model_len", ""))
            or min(_DEFAULT_CONTEXT, declared.context_length or _DEFAULT_CONTEXT),
            concurrency=_number(data.get("llm_max_num_seqs", "")) or _DEFAULT_CONCURRENCY,
            memory_percent=_number(data.get("llm_mem_fraction_static", ""))
            or _number(data.get("llm_gpu_memory_utilization", ""))
            or 90,
            data_parallel=_number(data.get("llm_data_parallel", "")) or 1,
            attention=declared.attention if is_of_version else None,
            weights_mib=declared.weights_mib if is_of_version and not is_converted else 0,
            kv_kib_per_token=declared.kv_kib_per_token if is_of_version else 0,
        )
    except Rejected:
        return None


def _row(choice: Choice, known: Mapping[str, GpuShare], chosen: str) -> ShareRow:
    offer, value = choice.offer, _value(choice)
    share = known.get(value)
    refused = "; ".join(refusal.message for refusal in choice.refusals)
    return ShareRow(
        title=offer.title,
        instance_type=offer.instance_type,
        value=value if share else "",
        is_chosen=value == chosen,
        # What was chosen before it went off is still sent, so that it is refused with its reason.
        is_off=not choice.can_choose and value != chosen,
        is_recommended=choice.is_recommended,
        memory_mib=offer.memory_mib,
        headroom=choice.headroom_percent / 100,
        usd_per_hour_amount=offer.usd_per_hour_amount,
        month_amount=choice.month_amount,
        explanation=f"rejected: {refused}" if refused else choice.explanation,
        free_now=offer.free_replicas,
        is_started=offer.is_started,
        free_label=f"{offer.free_replicas} free",
        tainted_label=_tainted_label(share) if share and offer.free_replicas is not None else "",
        is_simulated=bool(share and share.is_simulated),
    )


def _plain(share: GpuShare, chosen: str) -> ShareRow:
    name = share.gpu_name.removeprefix("NVIDIA-")
    return ShareRow(
        title=f"{share.gpus} \N{MULTIPLICATION SIGN} {name}",
        instance_type=share.instance_type,
        value=value_of(share),
        is_chosen=value_of(share) == chosen,
        is_off=False,
        is_recommended=False,
        memory_mib=share.vram_mib // share.gpus,
        headroom=None,
        usd_per_hour_amount=share.usd_per_hour_amount,
        month_amount=None,
        explanation="",
        free_now=share.free_now,
        free_label=f"{share.free_now} free",
        tainted_label=_tainted_label(share),
        is_simulated=share.is_simulated,
        is_started=share.is_startable and not share.nodes,
    )


def _tainted_label(share: GpuShare) -> str:
    """Describe free GPUs that a request gets only with a toleration."""
    if not share.free_tainted:
        return ""
    more = " more" if share.free_now else ""
    named = ", ".join(share.taints)
    return f"{share.free_tainted}{more} free on nodes that take only pods which tolerate {named}"


def _value(choice: Choice) -> str:
    offer = choice.offer
    return f"{offer.instance_type}|{offer.gpu_resource}|{offer.gpus}"


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isdecimal() and len(text) < 10 else None
