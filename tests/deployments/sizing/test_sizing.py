"""The adviser's sums, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from deployments.sizing.domain.alternatives import (
    ListedInstanceType,
    offers_elsewhere,
    offers_partitioned,
    profile_name,
)
from deployments.sizing.domain.demand import Demand, TeamLimits
from deployments.sizing.domain.memory import (
    Attention,
    FileModel,
    LanguageModel,
    MeasuredMemory,
    Need,
    Term,
    need_of_file,
    need_of_language_model,
)
from deployments.sizing.domain.ranking import (
    Advice,
    Offer,
    RejectionReason,
    ShareKind,
    advise,
)
from portal.core.definitions import Rejected

DETECTOR = FileModel(weights_mib=700, activations_mib=2000, runtime_mib=450)
LLAMA_8B = LanguageModel(
    parameters_millions=8030,
    context_tokens=8192,
    concurrency=16,
    attention=Attention(layers=32, kv_heads=8, head_size=128),
)
A10G = Offer(
    instance_type="g5.xlarge",
    gpu_name="A10G",
    gpu_resource="nvidia.com/gpu",
    gpus=1,
    memory_mib=22888,
    kind=ShareKind.WHOLE,
    usd_per_hour_amount=Decimal("1.006"),
    free_replicas=2,
)
T4_QUARTER = replace(
    A10G,
    instance_type="g4dn.xlarge",
    gpu_name="T4",
    memory_mib=4096,
    kind=ShareKind.SHARED,
    usd_per_hour_amount=Decimal("0.1315"),
)
SLICE = replace(
    A10G,
    instance_type="p4d.24xlarge",
    gpu_name="A100",
    gpu_resource="nvidia.com/mig-1g.5gb",
    memory_mib=5120,
    kind=ShareKind.MIG,
    usd_per_hour_amount=Decimal("0.343"),
    free_replicas=9,
)


def terms(need: Need) -> dict[str, int]:
    return {term.name: term.mib for term in need.terms}


def of_file(
    *offers: Offer, limits: TeamLimits | None = None, demand: Demand | None = None
) -> Advice:
    need = need_of_file(DETECTOR)
    return advise(need=need, offers=offers, demand=demand or Demand(), limits=limits)


def test_a_split_term_is_rounded_up_on_each_gpu() -> None:
    weights = Term("Weights", 100, "", parts=8)

    assert [weights.mib_on(gpus) for gpus in (1, 2, 3, 8, 16)] == [100, 50, 34, 13, 13]


def test_a_file_needs_weights_and_activations_of_every_instance_and_one_runtime() -> None:
    need = need_of_file(DETECTOR, instances=3)

    assert terms(need) == {"Weights": 2100, "Activations": 6000, "Runtime": 450}
    assert need.mib_on(1) == 8560
    assert need.mib_on(4) == 8560, "a file does not split over GPUs"
    assert not need.is_measured


def test_a_measurement_replaces_the_estimate_and_what_is_more_is_added() -> None:
    same = need_of_file(
        DETECTOR, measured=MeasuredMemory(label="detector:4", mib=1900, weights_mib=700)
    )
    grown = need_of_file(
        DETECTOR,
        instances=2,
        measured=MeasuredMemory(label="detector:3", mib=1900, weights_mib=600),
    )

    assert terms(same) == {"Measured": 1900}
    assert same.mib_on(1) == 1904
    assert same.basis == "measured on a GPU that served detector:4; it replaces the estimate"
    assert terms(grown) == {"Measured": 1900, "Larger weights": 100, "Additional instances": 2700}


def test_a_smaller_version_is_not_credited_with_memory_that_was_not_measured() -> None:
    need = need_of_file(
        DETECTOR, measured=MeasuredMemory(label="detector:3", mib=1900, weights_mib=900)
    )

    assert terms(need) == {"Measured": 1900}


def test_the_cache_of_a_language_model_follows_its_architecture() -> None:
    need = need_of_language_model(LLAMA_8B)

    # 8,030 million x 2 bytes = 15,316.01 MiB, counted as 15,317. A token: 2 x 32 x 8 x 128 x 2 bytes = 131,072 bytes;
    # x 8,192 tokens x 16 requests = 16,384 MiB. 5 % of the weights = 765 MiB.
    assert terms(need) == {"Weights": 15317, "KV cache": 16384, "Workspace": 765, "Runtime": 1024}
    assert need.mib_on(1) == 33504
    # 7,659 + 8,192 + 765 + 1,024 = 17,640, rounded up to 16.
    assert need.mib_on(2) == 17648


def test_copies_of_a_language_model_divide_the_gpus_among_them() -> None:
    two = need_of_language_model(replace(LLAMA_8B, data_parallel=2))

    # One copy on each of two GPUs needs as much as one on one; with four GPUs each copy has two.
    assert (two.mib_on(2), two.mib_on(4)) == (33504, 17648)
    assert two.has_room(gpus=4, memory_mib=22888)
    assert not two.has_room(gpus=2, memory_mib=22888)
    assert not two.has_room(gpus=3, memory_mib=81920), "one copy would have two GPUs, one a single"


def test_a_gpu_share_that_copies_cannot_divide_is_refused_with_the_reason() -> None:
    four = need_of_language_model(replace(LLAMA_8B, data_parallel=4))
    (one,) = advise(need=four, offers=[replace(A10G, memory_mib=81920)], demand=Demand()).rejected

    assert [(refusal.reason, refusal.message) for refusal in one.refusals] == [
        (RejectionReason.SPLIT, "1 GPU can't be divided among 4 copies of the model")
    ]


def test_an_unknown_architecture_goes_by_the_stated_rule_and_says_so() -> None:
    need = need_of_language_model(replace(LLAMA_8B, attention=None, kv_precision="fp8"))

    # 128 KiB a token at 16 bits is 64 KiB at 8 bits: half of the cache above.
    assert terms(need)["KV cache"] == 8192
    assert "about 64 KiB per token, based on model size" in need.terms[1].detail


def test_more_gpus_than_kv_heads_do_not_make_the_cache_smaller() -> None:
    shape = Attention(layers=28, kv_heads=2, head_size=128)
    need = need_of_language_model(replace(LLAMA_8B, attention=shape))

    cache = need.terms[1]
    assert cache.mib == 3584
    assert (cache.mib_on(1), cache.mib_on(2), cache.mib_on(8)) == (3584, 1792, 1792)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"precision": "fp12"}, "precision"),
        ({"concurrency": 0}, "concurrency"),
        ({"memory_percent": 120}, "memory_percent"),
    ],
)
def test_a_load_that_makes_no_sense_is_refused(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(Rejected) as raised:
        replace(LLAMA_8B, **changed)
    assert list(raised.value.fields) == [field]


def test_the_cheapest_with_room_comes_first_and_others_say_what_they_cost_more() -> None:
    size = of_file(A10G, T4_QUARTER, SLICE)

    assert [choice.offer.title for choice in size.ranked] == [
        "1 \N{MULTIPLICATION SIGN} T4, time-sliced",
        "A100, slice 1g.5gb",
        "1 \N{MULTIPLICATION SIGN} A10G",
    ]
    first, second, third = size.ranked
    assert first.is_recommended
    assert first.explanation == (
        "recommended: cheapest with free capacity; GPU memory is shared with other pods "
        "without isolation"
    )
    # (4,096 - 3,152) / 4,096 and 0.1315 x 730.
    assert (first.needed_mib, first.headroom_percent) == (3152, 23)
    assert first.month_amount == Decimal("96.00")
    assert second.explanation == "$154 a month more than 1 \N{MULTIPLICATION SIGN} T4, time-sliced"
    assert third.month_amount == Decimal("734.38")
    assert size.rejected == ()


def test_what_has_no_room_now_stands_behind_what_has() -> None:
    size = of_file(A10G, replace(SLICE, free_replicas=0))

    assert [choice.offer.gpu_name for choice in size.ranked] == ["A10G", "A100"]
    assert size.ranked[1].explanation == "waits for room; $484 a month less"


@pytest.mark.parametrize(
    ("offer", "limits", "why", "message"),
    [
        (
            replace(A10G, memory_mib=3000),
            None,
            RejectionReason.TOO_SMALL,
            "has 3,000 MiB, needs 3,152 MiB",
        ),
        (
            replace(A10G, memory_mib=3000, gpus=4),
            None,
            RejectionReason.SPLIT,
            "can't be split across GPUs",
        ),
        (
            replace(A10G, gpus=4),
            TeamLimits(quota_left_gpus=3),
            RejectionReason.QUOTA,
            "needs 4 GPUs, 3 left in the team's quota",
        ),
        (
            A10G,
            TeamLimits(budget_left_amount=Decimal(500), is_budget_binding=True),
            RejectionReason.BUDGET,
            (
                "$734 a month, $500 left in the team's budget for a full month; the budget is binding"
            ),
        ),
        (
            replace(A10G, missing=RejectionReason.NOT_HERE, missing_message="eks has none"),
            None,
            RejectionReason.NOT_HERE,
            "eks has none",
        ),
    ],
)
def test_each_rejection_says_why(
    offer: Offer, limits: TeamLimits | None, why: RejectionReason, message: str
) -> None:
    size = of_file(offer, limits=limits)

    assert size.ranked == ()
    assert size.recommended is None
    (refusal,) = size.rejected[0].refusals
    assert refusal.reason is why
    assert message in refusal.message
    assert size.rejected[0].can_choose is (why in (RejectionReason.QUOTA, RejectionReason.BUDGET))


def test_replicas_follow_the_measured_speed_and_a_busy_limit() -> None:
    # 200 x 20 ms = 4 GPU seconds a second; at 70 % busy that takes 5.7, so 6.
    demand = Demand(requests_per_second=200, busy_us=20_000)

    assert demand.replicas == 6
    assert Demand(requests_per_second=200).replicas == 1, "speed is not known"
    size = of_file(A10G, demand=demand)
    assert size.ranked[0].month_amount == Decimal("4406.28")
    assert size.ranked[0].explanation == "cheapest that fits; waits for room"


def test_vllm_uses_a_part_of_each_gpu() -> None:
    need = need_of_language_model(LLAMA_8B)
    pair = replace(A10G, gpus=2)

    ranking = advise(need=need, offers=[A10G, pair], demand=Demand())

    # 90 % of 22,888 MiB is 20,599; 17,648 are needed on each of two.
    assert [choice.offer.gpus for choice in ranking.ranked] == [2]
    assert ranking.ranked[0].headroom_percent == 14
    assert ranking.rejected[0].refusals[0].message == (
        "has 22,888 MiB (90% usable), needs 33,504 MiB"
    )


P4D = ListedInstanceType(
    instance_type="p4d.24xlarge",
    gpu_name="a100",
    gpus=8,
    memory_mib=40960,
    is_mig_capable=True,
    usd_per_hour_amount=Decimal("21.957642"),
)
G6 = ListedInstanceType(
    instance_type="g6.xlarge",
    gpu_name="l4",
    gpus=1,
    memory_mib=22888,
    is_mig_capable=False,
    usd_per_hour_amount=Decimal("0.8048"),
)
G6_LARGE = replace(G6, instance_type="g6.2xlarge", usd_per_hour_amount=Decimal("0.9776"))


def test_the_cheapest_type_of_each_gpu_that_is_not_here_is_named() -> None:
    need = need_of_file(DETECTOR)

    offers = offers_elsewhere(need, [P4D, G6_LARGE, G6], [A10G], cluster="eks-prod", can_grow=False)

    assert [offer.instance_type for offer in offers] == ["g6.xlarge", "p4d.24xlarge"]
    assert offers[0].missing_message == "eks-prod has no g6.xlarge node"
    # One of eight GPUs at the price of one.
    assert offers[1].usd_per_hour_amount == Decimal("2.744705")


def test_a_gpu_that_the_cluster_has_is_not_offered_again_in_a_larger_machine() -> None:
    need = need_of_file(DETECTOR)
    large = replace(G6, gpu_name="a10g", instance_type="g5.12xlarge", gpus=4)

    assert offers_elsewhere(need, [large], [A10G], cluster="eks", can_grow=False) == []


def test_a_gpu_that_could_be_sliced_says_which_slice_would_do() -> None:
    need = need_of_file(DETECTOR)
    whole = replace(A10G, instance_type="p4d.24xlarge", gpu_name="A100", memory_mib=40960)

    (offers,) = offers_partitioned(need, [P4D], [whole])

    assert offers.gpu_resource == "nvidia.com/mig-1g.5gb"
    assert (offers.memory_mib, offers.usd_per_hour_amount) == (5120, Decimal("0.343088"))
    assert offers.missing is RejectionReason.NOT_OFFERED
    assert offers_partitioned(need, [P4D], [whole, SLICE]) == []


@pytest.mark.parametrize(
    ("compute", "slices", "memory_mib", "name"),
    [
        (1, 1, 40960, "1g.5gb"),
        (3, 4, 81920, "3g.40gb"),
        (1, 1, 144384, "1g.18gb"),
        (3, 4, 144384, "3g.71gb"),
    ],
)
def test_mig_profiles_are_named_as_nvidia_names_them(
    compute: int, slices: int, memory_mib: int, name: str
) -> None:
    assert profile_name(compute, slices, memory_mib) == name


def test_a_range_goes_from_its_minimum_to_the_planned_value() -> None:
    need = need_of_file(
        replace(DETECTOR, spread_mib=1000, sizes="image 4 x 3 x 960 x 960"), instances=2
    )

    assert (need.min_mib_on(1), need.mib_on(1)) == (3856, 5856)
    assert need.range_on(1) == "3,856 to 5,856"
    assert need.terms[1].detail == "at image 4 x 3 x 960 x 960, 2 instances"
    assert need_of_file(DETECTOR).range_on(1) == "3,152"


def test_a_budget_that_approvers_may_exceed_rejects_nothing_and_ranks_what_is_within_it_first() -> (
    None
):
    left = TeamLimits(budget_left_amount=Decimal(500))
    dear = replace(A10G, usd_per_hour_amount=Decimal("1.006"))

    alone = of_file(dear, limits=left)
    both = of_file(dear, replace(SLICE, free_replicas=0), limits=left)

    assert alone.recommended is alone.ranked[0]
    assert alone.rejected == ()
    assert alone.ranked[0].explanation == (
        "recommended: cheapest with free capacity; $734 a month, $500 left in the team's budget for a full "
        "month; an approver decides"
    )
    assert [choice.offer.gpu_name for choice in both.ranked] == ["A100", "A10G"]
    assert both.ranked[0].budget_note == ""
