"""What happened in a large portal: leases of GPUs, the ledger, and readings of its deployments."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleet.models import Cluster
    from tests.benchmarks.fleet_scene import Size

PRICE = "5.672"


def leases(size: Size, cluster: Cluster, now: datetime) -> None:
    """Two pods of each deployment, each with one GPU; the last nodes stay free."""
    sql(
        """
        INSERT INTO fleet_gpulease (cluster_id, node_id, workload_id, pod_uid, pod_name, namespace,
            team_slug, share_ppm, started_at, ended_at, changed_at)
        SELECT %(cluster)s, n.id, w.id, 'pod-' || w.id || '-' || pod, w.name || '-' || pod,
            w.namespace, w.namespace, 1000000, %(at)s, NULL, %(at)s
        FROM (SELECT *, row_number() OVER (ORDER BY id) AS place FROM fleet_workload) w
        CROSS JOIN generate_series(0, 1) pod
        JOIN (SELECT id, row_number() OVER (ORDER BY id) AS place FROM fleet_node) n
            ON n.place = 1 + (2 * w.place + pod) / %(gpus)s %% %(nodes)s
        """,
        cluster=cluster.pk,
        at=now - timedelta(days=1),
        gpus=size.gpus_per_node,
        nodes=size.nodes,
    )


def ledger(size: Size, cluster: Cluster, now: datetime) -> None:
    start = now.replace(hour=0, minute=0) - timedelta(days=size.days - 1)
    end = now.replace(minute=0)
    hours = {"start": start, "end": end, "hours": size.hours, "day": end - timedelta(days=1)}
    span = """
        SELECT hour FROM generate_series(%(start)s::timestamptz, %(end)s - interval '1 hour',
            interval '1 hour') hour
        WHERE hour >= %(day)s OR extract(hour FROM hour AT TIME ZONE 'UTC') < %(hours)s
    """
    sql(
        f"""
        INSERT INTO fleet_sealedhour (cluster_id, hour, sealed_at)
        SELECT %(cluster)s, hour, hour + interval '1 hour' FROM generate_series(%(start)s::timestamptz,
            %(end)s - interval '1 hour', interval '1 hour') hour;
        INSERT INTO fleet_ledgerrow (hour, cluster_name, node_uid, node_name, instance_type,
            capacity_type, kind, team_slug, namespace, workload_name, workload_labels,
            gpu_milliseconds, cost_amount, usd_per_hour_amount, price_source, is_demo, sealed_at)
        SELECT hour, %(name)s, 'uid-' || n.place, 'node-' || n.place, 'g5.48xlarge', 'on-demand',
            'allocated', w.namespace, w.namespace, w.name, w.labels, 7200000, 1.418, {PRICE}, 'list',
            false, hour + interval '1 hour'
        FROM ({span}) hours
        CROSS JOIN (SELECT *, row_number() OVER (ORDER BY id) AS place FROM fleet_workload) w
        JOIN (SELECT n AS place FROM generate_series(0, %(nodes)s - 1) n) n
            ON n.place = (2 * w.place) / 8 %% %(nodes)s
        ORDER BY hour;
        INSERT INTO fleet_ledgerrow (hour, cluster_name, node_uid, node_name, instance_type,
            capacity_type, kind, team_slug, namespace, workload_name, workload_labels,
            gpu_milliseconds, cost_amount, usd_per_hour_amount, price_source, is_demo, sealed_at)
        SELECT hour, %(name)s, 'uid-' || n, 'node-' || n, 'g5.48xlarge', 'on-demand', 'idle', '', '', '',
            '{{}}', 3600000, 0.709, {PRICE}, 'list', false, hour + interval '1 hour'
        FROM ({span}) hours CROSS JOIN generate_series(0, %(nodes)s / 10) n ORDER BY hour
        """,
        cluster=cluster.pk,
        name=cluster.name,
        nodes=size.nodes,
        **hours,
    )


def readings(size: Size, now: datetime) -> None:
    counters = (
        "request_success, request_failure, inference_count, execution_count, request_duration_us, "
        "queue_duration_us, compute_input_us, compute_infer_us, compute_output_us, prompt_tokens, "
        "generation_tokens, first_tokens, first_token_us, later_tokens, later_token_us, preemptions, "
        "observed_ms, gpu_busy_ms, gpu_busy_source"
    )
    values = (
        "1000, 1, 1000, 500, 20000000, 1000000, 1000000, 17000000, 1000000, 0, 0, 0, 0, 0, 0, 0, "
    )
    start = now.replace(hour=0, minute=0) - timedelta(days=size.days - 1)
    sql(
        f"""
        INSERT INTO fleet_workloadhour (workload_id, start, is_demo, {counters})
        SELECT w.id, hour, false, {values} 3600000, 17000, 'triton'
        FROM generate_series(%(start)s::timestamptz, %(end)s - interval '1 hour', interval '1 hour')
            hour CROSS JOIN fleet_workload w
        WHERE hour >= %(day)s OR extract(hour FROM hour AT TIME ZONE 'UTC') < 1
        ORDER BY hour;
        INSERT INTO fleet_workloadminute (workload_id, start, {counters})
        SELECT w.id, minute, {values} 60000, 17000, 'triton'
        FROM generate_series(%(now)s::timestamptz - interval '10 minutes', %(now)s, interval '1 minute')
            minute CROSS JOIN fleet_workload w
        """,
        start=start,
        end=now.replace(minute=0),
        day=now.replace(minute=0) - timedelta(days=1),
        now=now,
    )
    _sum_up_days()


def _sum_up_days() -> None:
    """As fleet.telemetry.services.days does day by day."""
    sums = (
        "sum(request_success), sum(request_failure), sum(inference_count), {tokens}, "
        "sum(observed_ms), sum(gpu_busy_ms), max(gpu_busy_source)"
    )
    names = (
        "request_success, request_failure, inference_count, tokens, observed_ms, gpu_busy_ms, "
        "gpu_busy_source"
    )
    of_hours = sums.format(tokens="sum(prompt_tokens + generation_tokens)")
    of_days = sums.format(tokens="sum(tokens)")
    sql(
        f"""
        INSERT INTO fleet_workloadday (day, workload_id, {names})
        SELECT (start AT TIME ZONE 'UTC')::date, workload_id, {of_hours} FROM fleet_workloadhour
        WHERE (start AT TIME ZONE 'UTC')::date < (now() AT TIME ZONE 'UTC')::date GROUP BY 1, 2;
        INSERT INTO fleet_teamusageday (day, team_slug, cluster_name, {names})
        SELECT d.day, w.namespace, c.name, {of_days}
        FROM fleet_workloadday d JOIN fleet_workload w ON w.id = d.workload_id
        JOIN fleet_cluster c ON c.id = w.cluster_id GROUP BY 1, 2, 3;
        INSERT INTO fleet_teamusagehour (hour, team_slug, cluster_name, {names})
        SELECT h.start, w.namespace, c.name, {of_hours}
        FROM fleet_workloadhour h JOIN fleet_workload w ON w.id = h.workload_id
        JOIN fleet_cluster c ON c.id = w.cluster_id
        WHERE (start AT TIME ZONE 'UTC')::date < (now() AT TIME ZONE 'UTC')::date GROUP BY 1, 2, 3;
        INSERT INTO fleet_summedday (day, has_hours) SELECT DISTINCT day, true FROM fleet_workloadday
        """
    )


def sql(statements: str, **values: Any) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        for statement in statements.split(";"):
            cursor.execute(statement, values or None)
