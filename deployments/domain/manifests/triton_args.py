"""How tritonserver is started; the same command wherever it runs."""

from __future__ import annotations

from typing import Final

from deployments.domain.manifests.parts import Served

HTTP_PORT: Final = 8080
METRICS_PORT: Final = 8002
MODELS: Final = "/mnt/models"
_EXIT_SECONDS = 20


def command() -> list[str]:
    return [
        "tritonserver",
        f"--model-repository={MODELS}",
        f"--http-port={HTTP_PORT}",
        "--grpc-port=9000",
        f"--metrics-port={METRICS_PORT}",
        f"--exit-timeout-secs={_EXIT_SECONDS}",
    ]


def settings_of(served: Served) -> list[str]:
    """What a revision adds to the command."""
    if served.spec.is_first_schema:
        return []
    made = ["--metrics-config=summary_latencies=true"]
    if served.config_name:
        made.append(f"--model-config-name={served.config_name}")
    return made
