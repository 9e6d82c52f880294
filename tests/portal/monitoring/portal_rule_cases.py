"""For each rule of the portal's own metrics: series with which it fires, and the nearest ones with which it does not.

Time begins at 0 in these series, so a timestamp of 0 is as old as the series.
"""

from __future__ import annotations

from typing import Final

from tests.portal.monitoring.promtool import Case, Series

_UP: Final[Series] = {'slipway_collector_success{collector="rows"}': "1x60"}
_DOCTOR: Final = "`manage.py doctor` names the problem and its fix."


def _requests(failed: str, served: str) -> Series:
    name = "slipway_http_requests_total"
    return {
        f'{name}{{view="home",method="GET",status="500",instance="a"}}': failed,
        f'{name}{{view="home",method="GET",status="200",instance="b"}}': served,
    }


def _times(*, slow: int, all_of_them: int) -> Series:
    """Requests a minute, of which so many take from 1 to 2.5 seconds."""
    name = "slipway_http_request_duration_seconds"
    return {
        f'{name}_bucket{{view="home",le="1.0"}}': f"0+{all_of_them - slow}x60",
        f'{name}_bucket{{view="home",le="2.5"}}': f"0+{all_of_them}x60",
        f'{name}_bucket{{view="home",le="+Inf"}}': f"0+{all_of_them}x60",
        f'{name}_count{{view="home"}}': f"0+{all_of_them}x60",
    }


def _heard(first: str, second: str) -> Series:
    """As two web processes say it, one of which was scraped later."""
    name = "slipway_queue_heartbeat_timestamp_seconds"
    return {
        f'{name}{{queue="delivery",instance="a"}}': first,
        f'{name}{{queue="delivery",instance="b"}}': second,
    }


def _cluster(observed: str, reachable: str, sealed: str = "0+60x200") -> Series:
    return {
        'slipway_cluster_observed_timestamp_seconds{cluster="prod"}': observed,
        'slipway_cluster_reachable{cluster="prod"}': reachable,
        'slipway_ledger_sealed_timestamp_seconds{cluster="prod"}': sealed,
    }


PORTAL: Final = [
    Case(
        "SlipwayPortalAbsent",
        {},
        severity="critical",
        labels={},
        says=(
            "Nothing scrapes the portal, or it does not answer",
            "While it is down, rollouts do not advance and nothing is aborted. Open its address: if it answers, check the"
            " scrape's token or network; if not, read the logs of web.",
        ),
    ),
    Case("SlipwayPortalAbsent", _UP),
    Case(
        "SlipwayPortalErrors",
        _requests("0+2x60", "0+18x60"),
        severity="critical",
        labels={},
        says=(
            "The portal answers with errors",
            f"10% of its requests failed in 5 minutes. The log of web has each error with its address. {_DOCTOR}",
        ),
    ),
    # Exactly the limit; too few.
    Case("SlipwayPortalErrors", _requests("0+5x60", "0+95x60")),
    Case("SlipwayPortalErrors", _requests("0 0 1 1 2 2 3 3 4 4 4x50", "0x60"), at="13m"),
    Case(
        "SlipwayPortalSlow",
        _times(slow=100, all_of_them=100),
        labels={},
        says=(
            "The portal answers slowly",
            "1 of 20 requests takes longer than 2.425s. The dashboard shows by view which ones; look at the database's load"
            " and at the processor time of web.",
        ),
    ),
    # 4 of 100; too few.
    Case("SlipwayPortalSlow", _times(slow=4, all_of_them=100)),
    Case("SlipwayPortalSlow", _times(slow=4, all_of_them=4)),
    Case(
        "SlipwayPortalQueue",
        _heard("0x60", "0x60"),
        severity="critical",
        labels={"queue": "delivery"},
        says=(
            "Queue delivery has no working worker",
            "The last heartbeat came through 30m 0s ago. All queues: start beat, once. One queue: start or add workers"
            " of it. `manage.py doctor --area workers` says which.",
        ),
    ),
    # One process was not scraped for a while; 60 seconds.
    Case("SlipwayPortalQueue", _heard("0x60", "0+60x60")),
    Case("SlipwayPortalQueue", _heard("0 0+60x60", "0 0+60x60")),
    Case(
        "SlipwayPortalLag",
        {'slipway_reconcile_lag_seconds{kind="rollout"}': "121x60"},
        labels={"kind": "rollout"},
        says=(
            "Rows of kind rollout are handled late",
            "The first has been due for 2m 1s. Add workers of its queue; their logs name tasks that hang."
            " docs/operations.md has the queue of each kind.",
        ),
    ),
    Case("SlipwayPortalLag", {'slipway_reconcile_lag_seconds{kind="rollout"}': "120x60"}),
    # Not for five minutes.
    Case("SlipwayPortalLag", {'slipway_reconcile_lag_seconds{kind="rollout"}': "0x26 300x30"}),
    Case(
        "SlipwayPortalCluster",
        _cluster("0x60", "0x60"),
        severity="critical",
        labels={"cluster": "prod"},
        says=(
            "Cluster prod cannot be reached",
            "It was last observed 30m 0s ago. Test its connection under Admin > Clusters: the steps say where it ends.",
        ),
    ),
    # It was reached a while ago only because nobody looked: the queue's alert says so; four minutes.
    Case("SlipwayPortalCluster", _cluster("0x60", "1x60")),
    Case("SlipwayPortalCluster", _cluster("0+60x25 1500x20", "0x60"), at="29m"),
    Case(
        "SlipwayPortalLedger",
        _cluster("0+60x200", "1x200", "0x200"),
        at="180m",
        labels={"cluster": "prod"},
        says=(
            "Costs of prod are not sealed",
            "The last sealed hour ended 3h 0m 0s ago. Check beat and the workers of the queue telemetry: fleet.meter"
            " seals hours.",
        ),
    ),
    # An hour and a half; nothing is observed, so nothing can be sealed.
    Case("SlipwayPortalLedger", _cluster("0+60x200", "1x200", "0x200"), at="95m"),
    Case("SlipwayPortalLedger", _cluster("0+60x200", "0x200", "0x200"), at="180m"),
    Case(
        "SlipwayPortalAudit",
        {
            'slipway_audit_unsealed_timestamp_seconds{instance="a"}': "0x60",
            'slipway_audit_unsealed_timestamp_seconds{instance="b"}': "0+60x60",
        },
        labels={},
        says=(
            "Events of the audit trail are not sealed",
            "The first has waited for 30m 0s. Check beat and the workers of the queue notifications: audit.seal chains"
            " events.",
        ),
    ),
    # It was sealed meanwhile; a new one each minute.
    Case("SlipwayPortalAudit", {"slipway_audit_unsealed_timestamp_seconds": "0x20 _x40"}),
    Case("SlipwayPortalAudit", {"slipway_audit_unsealed_timestamp_seconds": "0+60x60"}),
    Case(
        "SlipwayPortalUnread",
        {'slipway_collector_success{collector="queues"}': "0x60"},
        labels={"collector": "queues"},
        says=(
            "The portal's metrics of queues cannot be read",
            "Alerts on them cannot fire. The log of web has the reason. `manage.py doctor --area database --area"
            " broker`.",
        ),
    ),
    Case("SlipwayPortalUnread", {'slipway_collector_success{collector="queues"}': "1x60"}),
    Case(
        "SlipwayApprovalWaiting",
        {'slipway_approval_waiting_seconds{kind="batch-job"}': "90000x60"},
        severity="info",
        labels={"kind": "batch-job"},
        says=(
            "A batch-job waits for an approver",
            "The oldest has waited for 1d 1h 0m 0s. Its approvers find it under Approvals. Add leads or delegates if"
            " nobody looks, and a channel for the event.",
        ),
    ),
    Case("SlipwayApprovalWaiting", {'slipway_approval_waiting_seconds{kind="x"}': "86400x60"}),
    Case(
        "SlipwayOfficeHours",
        {
            'slipway_scheduled_pools{state="problem",instance="a"}': "2x60",
            'slipway_scheduled_pools{state="open",instance="a"}': "5x60",
        },
        labels={},
        says=(
            "Office hours of 2 pools are not applied",
            "Their size could not be changed: nodes that should end keep running, or nodes are missing. The page of the pool under Fleet"
            " says what the cluster or AWS refused.",
        ),
    ),
    # One pass that failed; none failed.
    Case("SlipwayOfficeHours", {'slipway_scheduled_pools{state="problem"}': "0x20 1x5 0x35"}),
    Case("SlipwayOfficeHours", {'slipway_scheduled_pools{state="open"}': "5x60"}),
]
