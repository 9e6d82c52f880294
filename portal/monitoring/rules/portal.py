"""The portal itself, by its own /metrics.

Every web process says the same of queues, rows, clusters and seals, so rules take the maximum. Limits are those of the
doctor where it has one.
"""

from __future__ import annotations

from typing import Final

from portal.core import heartbeats
from portal.monitoring.rules.rule import AlertRule, Group, Severity

ERROR_RATIO: Final = 0.05
_LEAST_ERRORS: Final = 5
SLOW_SECONDS: Final = 1.0
_LEAST_REQUESTS: Final = 50
HEARTBEAT_SECONDS: Final = 3 * heartbeats.EVERY_SECONDS
LAG_SECONDS: Final = 120
_LEDGER_SECONDS: Final = 2 * 3600
_AUDIT_SECONDS: Final = 300
_WAITING_SECONDS: Final = 24 * 3600
_REQUESTS: Final = "slipway_http_requests_total"
_DOCTOR: Final = "`manage.py doctor` names the problem and its fix."


def _absent() -> AlertRule:
    return AlertRule(
        name="SlipwayPortalAbsent",
        expr="absent(slipway_collector_success)",
        hold="5m",
        severity=Severity.CRITICAL,
        summary="Nothing scrapes the portal, or it does not answer",
        description="While it is down, rollouts do not advance and nothing is aborted.",
        advice="Open its address: if it answers, check the scrape's token or network; if not, read the logs of web.",
    )


def _errors() -> AlertRule:
    failed = f'sum(rate({_REQUESTS}{{status=~"5.."}}[5m]))'
    count = f'sum(increase({_REQUESTS}{{status=~"5.."}}[5m]))'
    return AlertRule(
        name="SlipwayPortalErrors",
        expr=f"{failed} / sum(rate({_REQUESTS}[5m])) > {ERROR_RATIO} and {count} >= {_LEAST_ERRORS}",
        hold="5m",
        severity=Severity.CRITICAL,
        summary="The portal answers with errors",
        description="{{ $value | humanizePercentage }} of its requests failed in 5 minutes.",
        advice="The log of web has each error with its address. " + _DOCTOR,
    )


def _slow() -> AlertRule:
    seconds = "slipway_http_request_duration_seconds"
    p95 = f"histogram_quantile(0.95, sum by (le) (rate({seconds}_bucket[10m])))"
    return AlertRule(
        name="SlipwayPortalSlow",
        expr=f"{p95} > {SLOW_SECONDS:g} and sum(increase({seconds}_count[10m])) >= {_LEAST_REQUESTS}",
        hold="10m",
        severity=Severity.WARNING,
        summary="The portal answers slowly",
        description="1 of 20 requests takes longer than {{ $value | humanizeDuration }}.",
        advice="The dashboard shows by view which ones; look at the database's load and at the processor time of web.",
    )


def _queue() -> AlertRule:
    at = "max by (queue) (slipway_queue_heartbeat_timestamp_seconds)"
    return AlertRule(
        name="SlipwayPortalQueue",
        expr=f"time() - {at} > {HEARTBEAT_SECONDS}",
        hold="1m",
        severity=Severity.CRITICAL,
        summary="Queue {{ $labels.queue }} has no working worker",
        description="The last heartbeat came through {{ $value | humanizeDuration }} ago.",
        advice="All queues: start beat, once. One queue: start or add workers of it. "
        "`manage.py doctor --area workers` says which.",
    )


def _lag() -> AlertRule:
    return AlertRule(
        name="SlipwayPortalLag",
        expr=f"max by (kind) (slipway_reconcile_lag_seconds) > {LAG_SECONDS}",
        hold="5m",
        severity=Severity.WARNING,
        summary="Rows of kind {{ $labels.kind }} are handled late",
        description="The first has been due for {{ $value | humanizeDuration }}.",
        advice="Add workers of its queue; their logs name tasks that hang. docs/operations.md has the queue of each kind.",
    )


def _cluster() -> AlertRule:
    reachable = "max by (cluster) (slipway_cluster_reachable) == 0"
    at = "max by (cluster) (slipway_cluster_observed_timestamp_seconds)"
    return AlertRule(
        name="SlipwayPortalCluster",
        expr=f"time() - {at} > 300 and on (cluster) ({reachable})",
        hold="1m",
        severity=Severity.CRITICAL,
        summary="Cluster {{ $labels.cluster }} cannot be reached",
        description="It was last observed {{ $value | humanizeDuration }} ago.",
        advice="Test its connection under Admin > Clusters: the steps say where it ends.",
    )


def _ledger() -> AlertRule:
    end = "max by (cluster) (slipway_ledger_sealed_timestamp_seconds)"
    reachable = "max by (cluster) (slipway_cluster_reachable) == 1"
    return AlertRule(
        name="SlipwayPortalLedger",
        expr=f"time() - {end} > {_LEDGER_SECONDS} and on (cluster) ({reachable})",
        hold="10m",
        severity=Severity.WARNING,
        summary="Costs of {{ $labels.cluster }} are not sealed",
        description="The last sealed hour ended {{ $value | humanizeDuration }} ago.",
        advice="Check beat and the workers of the queue telemetry: fleet.meter seals hours.",
    )


def _audit() -> AlertRule:
    oldest = "min(slipway_audit_unsealed_timestamp_seconds)"
    return AlertRule(
        name="SlipwayPortalAudit",
        expr=f"time() - {oldest} > {_AUDIT_SECONDS}",
        hold="5m",
        severity=Severity.WARNING,
        summary="Events of the audit trail are not sealed",
        description="The first has waited for {{ $value | humanizeDuration }}.",
        advice="Check beat and the workers of the queue notifications: audit.seal chains events.",
    )


def _waiting() -> AlertRule:
    return AlertRule(
        name="SlipwayApprovalWaiting",
        expr=f"max by (kind) (slipway_approval_waiting_seconds) > {_WAITING_SECONDS}",
        hold="5m",
        severity=Severity.INFO,
        summary="A {{ $labels.kind }} waits for an approver",
        description="The oldest has waited for {{ $value | humanizeDuration }}.",
        advice="Its approvers find it under Approvals. Add leads or delegates if nobody looks, and a channel for the event.",
    )


def _office_hours() -> AlertRule:
    return AlertRule(
        name="SlipwayOfficeHours",
        expr='max(slipway_scheduled_pools{state="problem"}) > 0',
        hold="15m",
        severity=Severity.WARNING,
        summary="Office hours of {{ $value }} pools are not applied",
        description="Their size could not be changed: nodes that should end keep running, or nodes are missing.",
        advice="The page of the pool under Fleet says what the cluster or AWS refused.",
    )


def _unread() -> AlertRule:
    return AlertRule(
        name="SlipwayPortalUnread",
        expr="min by (collector) (slipway_collector_success) == 0",
        hold="5m",
        severity=Severity.WARNING,
        summary="The portal's metrics of {{ $labels.collector }} cannot be read",
        description="Alerts on them cannot fire.",
        advice="The log of web has the reason. `manage.py doctor --area database --area broker`.",
    )


def group() -> Group:
    rules = (_absent(), _errors(), _slow(), _queue(), _lag(), _cluster(), _ledger(), _audit())
    return Group("slipway-portal", (*rules, _waiting(), _office_hours(), _unread()))
