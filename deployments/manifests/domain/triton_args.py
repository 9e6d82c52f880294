"""The command of tritonserver; the same wherever it runs."""

from __future__ import annotations

from typing import Final

from deployments.manifests.domain import termination
from deployments.manifests.domain.metadata import ServedRevision

HTTP_PORT: Final = 8080
METRICS_PORT: Final = 8002
MODELS: Final = "/mnt/models"
_EXIT_SECONDS = 20
# Everything but inference, metadata and health, for all clients: the header that would allow access
# needs a value with a line feed, which no request can contain.
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
    """Return the arguments that a revision adds to the command."""
    args = []
    if served.spec.summary_latencies:
        args.append("--metrics-config=summary_latencies=true")
    settings = [served.spec.triton, *(model.triton for model in served.spec.additional_models)]
    if cache_mib := sum(triton.response_cache_mib for triton in settings):
        # One cache for all models of the process; config.pbtxt only says which of them use it.
        args.append(f"--cache-config=local,size={cache_mib * 1024 * 1024}")
    if any(triton.instances.is_rate_limited for triton in settings):
        # Off by default, and then Triton ignores the rate limiters of config.pbtxt.
        args.append("--rate-limit=execution_count")
    if served.config_name:
        args.append(f"--model-config-name={served.config_name}")
    return [*args, *termination.triton_args(served.spec), *_loaded(served)]


def sources_of(served: ServedRevision) -> list[tuple[str, str]]:
    """Return the source of each model and its path in the pod. A single model is downloaded as a whole
    repository. With several each is downloaded into its own directory: two prefixes downloaded into one
    directory would depend on their order.
    """
    if not served.additional_models:
        return [(served.storage_uri, MODELS)]
    own = (served.model_uri, f"{MODELS}/{served.model_name}")
    return [
        own,
        *((model.uri, f"{MODELS}/{model.model_name}") for model in served.additional_models),
    ]


def _loaded(served: ServedRevision) -> list[str]:
    """Load exactly these models. Explicit control would also let callers load and unload models with
    their own files: `command` refuses that part of Triton's API.
    """
    if not served.additional_models:
        return []
    names = [served.model_name, *(model.model_name for model in served.additional_models)]
    return ["--model-control-mode=explicit", *(f"--load-model={name}" for name in names)]
