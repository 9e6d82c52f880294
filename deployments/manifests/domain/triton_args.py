"""How tritonserver is started; the same command wherever it runs."""

from __future__ import annotations

from typing import Final

from deployments.manifests.domain.metadata import ServedRevision

HTTP_PORT: Final = 8080
METRICS_PORT: Final = 8002
MODELS: Final = "/mnt/models"
_EXIT_SECONDS = 20
# Whatever is neither inference, metadata nor health, for everybody: the header that would open it has
# a value with a line feed, which no request can carry.
_REFUSED_APIS: Final = (
    "shared-memory",
    "model-config",
    "model-repository",
    "statistics",
    "trace",
    "logging",
)
_REFUSED: Final = f"{','.join(_REFUSED_APIS)}:slipway-shut=\n"


def command() -> list[str]:
    return [
        "tritonserver",
        f"--model-repository={MODELS}",
        f"--http-port={HTTP_PORT}",
        "--grpc-port=9000",
        f"--metrics-port={METRICS_PORT}",
        f"--exit-timeout-secs={_EXIT_SECONDS}",
        f"--http-restricted-api={_REFUSED}",
        f"--grpc-restricted-protocol={_REFUSED}",
    ]


def settings_of(served: ServedRevision) -> list[str]:
    """What a revision adds to the command."""
    made = []
    if served.spec.summary_latencies:
        made.append("--metrics-config=summary_latencies=true")
    if served.config_name:
        made.append(f"--model-config-name={served.config_name}")
    return made + _loaded(served)


def sources_of(served: ServedRevision) -> list[tuple[str, str]]:
    """Where each model comes from, and its place in the pod's repository; as a whole for one alone.

    By model directory for several: two prefixes fetched into one place would depend on their order.
    """
    if not served.packed:
        return [(served.storage_uri, MODELS)]
    own = (served.model_uri, f"{MODELS}/{served.model_name}")
    return [own, *((one.uri, f"{MODELS}/{one.model_name}") for one in served.packed)]


def _loaded(served: ServedRevision) -> list[str]:
    """Exactly these, by name. Explicit control would also let every caller load and unload models,
    with files of their own: `command` refuses that part of Triton's API.
    """
    if not served.packed:
        return []
    names = [served.model_name, *(one.model_name for one in served.packed)]
    return ["--model-control-mode=explicit", *(f"--load-model={name}" for name in names)]
