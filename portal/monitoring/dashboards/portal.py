"""The portal itself: its requests, queues, rows, clusters and seals."""

from __future__ import annotations

from typing import Final

from portal.monitoring.dashboards.dashboard import Dashboard, Panel, Query, Row, Variable

_REQUESTS: Final = "slipway_http_requests_total"
_SECONDS: Final = "slipway_http_request_duration_seconds"
_WHERE: Final = '{view=~"$view"}'
_RANGE: Final = "[$__rate_interval]"


def _age(metric: str, by: str) -> str:
    return f"time() - max by ({by}) ({metric})"


def _quantile(share: float, by: str = "le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({_SECONDS}_bucket{_WHERE}{_RANGE})))"


def dashboard() -> Dashboard:
    return Dashboard(
        uid="slipway-portal",
        title="Slipway: the portal",
        variables=(Variable("view", "View", f"label_values({_REQUESTS}, view)"),),
        rows=(_requests(), _work(), _clusters()),
    )


def _requests() -> Row:
    by_status = f"sum by (status) (rate({_REQUESTS}{_WHERE}{_RANGE}))"
    failed = f'sum by (view) (rate({_REQUESTS}{{view=~"$view",status=~"5.."}}{_RANGE}))'
    quantiles = tuple(Query(_quantile(share), f"p{share * 100:.0f}") for share in (0.5, 0.95, 0.99))
    slowest = f"topk(10, {_quantile(0.95, 'le, view')})"
    return Row(
        "Requests",
        (
            Panel("Requests by status", "reqps", (Query(by_status, "{{status}}"),)),
            Panel("Latency", "s", quantiles),
            Panel("Server errors by view", "reqps", (Query(failed, "{{view}}"),)),
            Panel("Slowest views, p95", "s", (Query(slowest, "{{view}}"),)),
        ),
    )


def _work() -> Row:
    heard = _age("slipway_queue_heartbeat_timestamp_seconds", "queue")
    lag = "max by (kind) (slipway_reconcile_lag_seconds)"
    due = "max by (kind) (slipway_reconcile_due)"
    uploads = "max by (state) (slipway_uploads_in_progress)"
    return Row(
        "Work",
        (
            Panel(
                "Last heartbeat through each queue",
                "s",
                (Query(heard, "{{queue}}"),),
                "Beat sends one each 30 seconds: a growing age means that the queue has no workers, or that beat is not running.",
            ),
            Panel(
                "Waiting messages",
                "short",
                (Query("max by (queue) (slipway_queue_messages)", "{{queue}}"),),
            ),
            Panel("Lag of due rows", "s", (Query(lag, "{{kind}}"),)),
            Panel("Due rows", "short", (Query(due, "{{kind}}"),)),
            Panel("Versions uploaded or checked", "short", (Query(uploads, "{{state}}"),)),
        ),
    )


def _clusters() -> Row:
    failed = f"max by (cluster, error) (rate(slipway_cluster_errors_total{_RANGE}))"
    return Row(
        "Clusters and seals",
        (
            Panel(
                "Since the last observation",
                "s",
                (
                    Query(
                        _age("slipway_cluster_observed_timestamp_seconds", "cluster"), "{{cluster}}"
                    ),
                ),
            ),
            Panel("Failed requests", "reqps", (Query(failed, "{{cluster}}: {{error}}"),)),
            Panel(
                "Since the end of the last sealed hour",
                "s",
                (Query(_age("slipway_ledger_sealed_timestamp_seconds", "cluster"), "{{cluster}}"),),
            ),
            Panel(
                "Oldest event of the audit trail that is not sealed",
                "s",
                (Query("time() - min(slipway_audit_unsealed_timestamp_seconds)", "age"),),
            ),
        ),
    )
