"""Celery options and the beat schedule. Periodic sends expire before the next one is due."""

from __future__ import annotations

from typing import Any

from portal import env
from portal.core.heartbeats import EVERY_SECONDS

broker_url = env.secret("SLIPWAY_REDIS_URL")
broker_connection_retry_on_startup = True
broker_transport_options = {
    "visibility_timeout": 120,
    "socket_timeout": 5,
    "socket_connect_timeout": 5,
    # A request never waits for the broker: a sweep picks up what could not be sent.
    "max_retries": 0,
    # No message has a priority, and each further step is a list more that a worker waits at.
    "priority_steps": [0],
}
task_ignore_result = True
task_acks_late = True
task_reject_on_worker_lost = True
task_serializer = "json"
accept_content = ["json"]
worker_prefetch_multiplier = 1
worker_hijack_root_logger = False
task_time_limit = 600
task_default_queue = "delivery"
task_routes = {
    # It waits for clusters: not beside what is measured.
    "fleet.sweep_actions": {"queue": "delivery"},
    "fleet.advance_action": {"queue": "delivery"},
    "fleet.keep_office_hours": {"queue": "delivery"},
    "fleet.*": {"queue": "telemetry"},
    # External servers may be slow, so they have a queue of their own.
    "notifications.*": {"queue": "notifications"},
    "audit.*": {"queue": "notifications"},
    "deployments.verify_version": {"queue": "artifacts"},
    "deployments.sweep_versions": {"queue": "artifacts"},
    "deployments.advance_import": {"queue": "artifacts"},
    "deployments.sweep_imports": {"queue": "artifacts"},
    # They read the rows of inputs.
    "deployments.advance_batch": {"queue": "artifacts"},
    "deployments.sweep_batches": {"queue": "artifacts"},
    "deployments.verify_attestation": {"queue": "artifacts"},
    "deployments.sweep_attestations": {"queue": "artifacts"},
    "deployments.sweep_serving_bytes": {"queue": "artifacts"},
    "deployments.sweep_scans": {"queue": "artifacts"},
    "deployments.sweep_prometheus": {"queue": "notifications"},
    "deployments.sweep_caller_usage": {"queue": "telemetry"},
    "deployments.count_callers": {"queue": "telemetry"},
    "deployments.sweep_targets": {"queue": "telemetry"},
    "deployments.sweep_alerts": {"queue": "telemetry"},
    # It waits for pods to answer.
    "deployments.sweep_health": {"queue": "notifications"},
    # It reads weeks of hours: not beside what a rollout waits for.
    "deployments.sweep_advice": {"queue": "artifacts"},
}

QUEUES = sorted({task_default_queue, *(route["queue"] for route in task_routes.values())})


def _every(task: str, seconds: float) -> dict[str, Any]:
    return {"task": task, "schedule": seconds, "options": {"expires": seconds * 0.9}}


def _heartbeat(queue: str) -> dict[str, Any]:
    """Return the schedule of a queue's heartbeat, sent through the queue itself, so that its arrival says how late
    the queue is.
    """
    sent = _every("doctor.heartbeat", EVERY_SECONDS)
    return {**sent, "args": [queue], "options": {**sent["options"], "queue": queue}}


# By queue: how often one message looks for work of these sweeps, in seconds, and sends those that have some (portal.core.sweeps).
LOOKS: dict[str, tuple[float, tuple[str, ...]]] = {
    "delivery": (
        3,
        (
            "deployments.sweep_deployments",
            "deployments.sweep_rollouts",
            "deployments.sweep_pipelines",
            "deployments.sweep_golden_runs",
            "deployments.sweep_changes",
            "deployments.sweep_caller_keys",
            "fleet.sweep_actions",
            "fleet.keep_office_hours",
        ),
    ),
    "artifacts": (
        5,
        (
            "deployments.sweep_versions",
            "deployments.sweep_imports",
            "deployments.sweep_batches",
            "deployments.sweep_attestations",
        ),
    ),
    "notifications": (3, ("deployments.sweep_prometheus", "notifications.sweep")),
}


def _look(queue: str, seconds: float) -> dict[str, Any]:
    """Through the queue of the sweeps: where that is full, theirs wait and no others."""
    sent = _every("sweeps.look", seconds)
    return {**sent, "args": [queue], "options": {**sent["options"], "queue": queue}}


beat_schedule = {
    **{f"look for work of {queue}": _look(queue, rhythm) for queue, (rhythm, _) in LOOKS.items()},
    "sweep scans": _every("deployments.sweep_scans", 60),
    "sweep serving bytes": _every("deployments.sweep_serving_bytes", 60),
    "sweep caller usage": _every("deployments.sweep_caller_usage", 10),
    "sweep health": _every("deployments.sweep_health", 15),
    "sweep alerts": _every("deployments.sweep_alerts", 60),
    "sweep targets": _every("deployments.sweep_targets", 15),
    "sweep form drafts": _every("deployments.sweep_form_drafts", 3600),
    "sweep advice": _every("deployments.sweep_advice", 900),
    "seal audit trail": _every("audit.seal", 30),
    "stream audit trail": _every("audit.stream", 30),
    "anchor audit trail": _every("audit.anchor", 600),
    "mail links": _every("notifications.mail_links", 30),
    "observe clusters": _every("fleet.observe_clusters", 5),
    "poll metrics": _every("fleet.poll_metrics", 5),
    "meter and seal": _every("fleet.meter", 30),
    "sweep budgets": _every("fleet.sweep_budgets", 300),
    "refresh prices": _every("fleet.refresh_prices", 6 * 3600),
    "read GPU errors": _every("fleet.read_gpu_errors", 60),
    "read Neuron use": _every("fleet.read_neuron_use", 60),
    "read energy": _every("fleet.read_energy", 300),
    "thin samples": _every("fleet.thin_samples", 600),
    **{f"heartbeat of {queue}": _heartbeat(queue) for queue in QUEUES},
}
