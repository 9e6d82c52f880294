"""Hour by hour: what the ledger charged a team's deployments, what they used, and which nodes ran nothing.

Only sealed rows: an hour that is not sealed may still change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Q, Sum
from django.db.models.fields.json import KeyTextTransform

from fleet.costs.selectors.ledger_filter import IDLE, label
from fleet.gpus.selectors import prices
from fleet.models import LedgerKind, LedgerRow, Node, SealedHour, WorkloadHour
from portal.core import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The use of a deployment in one hour. `served` counts the requests that succeeded; the microseconds are sums
    over them.
    """

    served: int = 0
    failed: int = 0
    observed_ms: int = 0
    busy_ms: int = 0
    queue_us: int = 0
    compute_us: int = 0
    inferences: int = 0
    executions: int = 0

    @property
    def requests(self) -> int:
        return self.served + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedHour:
    """All revisions of a deployment together. Cost 0 with GPU time: no price was known. `is_made_up`: sample
    history of the demo.
    """

    start: datetime
    cost_amount: Decimal
    # GPU share x time, of all replicas.
    gpu_ms: int
    use: Use
    is_made_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHours:
    """A node that exists, with its sealed hours without and with a pod on its GPUs, and those of them that the demo
    made up.
    """

    uid: str
    name: str
    cluster_name: str
    instance_type: str
    capacity_type: str
    gpus: int
    usd_per_hour_amount: Decimal | None
    idle_hours: int
    held_hours: int
    made_up_hours: int = 0


def read_charged_hours(
    *, team_slug: str, start: datetime, end: datetime, deployments: Collection[str] | None = None
) -> Mapping[str, list[ChargedHour]]:
    """Return the charged hours by deployment, in order of time. `deployments` None means all."""
    served = read_use(team_slug, start, end, deployments)
    hours: dict[str, list[ChargedHour]] = defaultdict(list)
    charged = _rows(team_slug, start, end)
    if deployments is not None:
        charged = charged.filter(deployment__in=list(deployments))
    rows = (
        charged.values("hour", "deployment")
        .annotate(
            cost=Sum("cost_amount"),
            held=Sum("gpu_milliseconds"),
            made_up=Count("pk", filter=Q(is_demo=True)),
        )
        .order_by("hour")
    )
    for row in rows:
        hours[row["deployment"]].append(
            ChargedHour(
                start=row["hour"],
                cost_amount=row["cost"],
                gpu_ms=row["held"],
                use=served.get((row["deployment"], row["hour"]), Use()),
                is_made_up=row["made_up"] > 0,
            )
        )
    return hours


def sum_cost(*, team_slug: str, deployment: str, start: datetime, end: datetime) -> Decimal:
    rows = _rows(team_slug, start, end).filter(deployment=deployment)
    return Decimal(rows.aggregate(total=Sum("cost_amount"))["total"] or 0)


def count_sealed(*, cluster_id: int, start: datetime, end: datetime) -> int:
    rows = SealedHour.objects.filter(cluster_id=cluster_id, hour__gte=start, hour__lt=end)
    return rows.count()


def list_nodes(*, start: datetime, end: datetime) -> list[NodeHours]:
    """List the GPU nodes that exist now, with their sealed hours in [start, end)."""
    nodes = list(Node.objects.filter(gone_at=None, gpu_count__gt=0).select_related("cluster"))
    rows = (
        LedgerRow.objects.filter(hour__gte=start, hour__lt=end)
        .values("node_uid")
        .annotate(
            sealed=Count("hour", distinct=True, filter=~Q(kind=LedgerKind.ADJUSTMENT)),
            # An adjustment may say that a pod held it after all.
            held=Count("hour", distinct=True, filter=~IDLE),
            made_up=Count("hour", distinct=True, filter=Q(is_demo=True)),
        )
        .order_by()
    )
    counted = {row["node_uid"]: (row["sealed"], row["held"], row["made_up"]) for row in rows}
    today = clock.now().date()
    book = prices.book({node.instance_type for node in nodes}, on=today)
    return [_node_hours(node, *counted.get(node.uid, (0, 0, 0)), book, today) for node in nodes]


def _node_hours(
    node: Node, sealed: int, held: int, made_up: int, book: prices.PriceBook, today: date
) -> NodeHours:
    price = book.find_node_price(node, today)
    return NodeHours(
        uid=node.uid,
        name=node.name,
        cluster_name=node.cluster.name,
        instance_type=node.instance_type,
        capacity_type=node.capacity_type,
        gpus=node.gpu_count,
        usd_per_hour_amount=price.usd_per_hour_amount if price else None,
        idle_hours=max(0, sealed - held),
        held_hours=held,
        made_up_hours=made_up,
    )


def _rows(team_slug: str, start: datetime, end: datetime) -> Any:
    rows = LedgerRow.objects.filter(team_slug=team_slug, hour__gte=start, hour__lt=end)
    return rows.annotate(deployment=label("deployment")).exclude(deployment=None)


def read_use(
    team_slug: str, start: datetime, end: datetime, deployments: Collection[str] | None = None
) -> dict[tuple[str, datetime], Use]:
    """Return the use by deployment and hour. `deployments` None means all."""
    rows = WorkloadHour.objects.filter(
        workload__team__slug=team_slug, start__gte=start, start__lt=end
    )
    if deployments is not None:
        rows = rows.filter(workload__labels__deployment__in=list(deployments))
    sums = (
        rows.values("start", deployment=KeyTextTransform("deployment", "workload__labels"))
        .annotate(
            served=Sum("request_success"),
            failed=Sum("request_failure"),
            observed=Sum("observed_ms"),
            busy=Sum("gpu_busy_ms"),
            queue_us=Sum("queue_duration_us"),
            compute_us=Sum(F("compute_input_us") + F("compute_infer_us") + F("compute_output_us")),
            inferences=Sum("inference_count"),
            executions=Sum("execution_count"),
        )
        .order_by()
    )
    return {
        (row["deployment"], row["start"]): Use(
            served=row["served"],
            failed=row["failed"],
            observed_ms=row["observed"],
            busy_ms=row["busy"],
            queue_us=row["queue_us"],
            compute_us=row["compute_us"],
            inferences=row["inferences"],
            executions=row["executions"],
        )
        for row in sums
    }
