"""Stands in for `vllm serve` and SGLang's server in the local cluster: `python -m
slipway_localcluster.language_server`.

It reads no weights. A network with random weights answers, so its text has no meaning.
"""

import argparse
import os
import re
import sys

import uvicorn

from slipway_localcluster.language_server.api import CompletionApi
from slipway_localcluster.language_server.engine import BLOCK_TOKENS, Engine, EngineLimits
from slipway_localcluster.language_server.metrics import SERVERS, VLLM, Metrics
from slipway_localcluster.language_server.network import Network
from slipway_localcluster.language_server.server import LanguageServer

_STEP = "LOCALCLUSTER_STEP_SECONDS"
# The first with --shutdown-timeout.
_DRAINING_VLLM = (0, 18)
_DEFAULTS = EngineLimits()
_LABEL = (
    "This is the local cluster's stand-in for {server}: a small network with random weights. It loads no "
    "weights, and its answers have no meaning.\n"
)


def parse_arguments(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the options that this server knows, of vLLM or of SGLang, and the others."""
    parser = argparse.ArgumentParser(
        prog="slipway_localcluster.language_server", allow_abbrev=False
    )
    parser.add_argument("--server", choices=tuple(SERVERS), default="vllm")
    parser.add_argument("model", nargs="?", default="")
    parser.add_argument("--model-path", dest="path", default="")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name")
    parser.add_argument(
        "--max-model-len", "--context-length", type=int, default=_DEFAULTS.context_tokens
    )
    parser.add_argument(
        "--max-num-seqs", "--max-running-requests", type=int, default=_DEFAULTS.requests
    )
    parser.add_argument(
        "--lora-modules", "--lora-paths", nargs="+", default=[], metavar="NAME=ADAPTER"
    )
    parser.add_argument("--num-gpu-blocks-override", type=int, default=_DEFAULTS.blocks)
    parser.add_argument("--shutdown-timeout", type=int)
    parser.add_argument("--image", default="")
    options, others = parser.parse_known_args(arguments)
    if options.shutdown_timeout is not None and not _knows_drain(options.server, options.image):
        parser.error(f"unrecognized arguments: --shutdown-timeout={options.shutdown_timeout}")
    if not (options.model or options.path):
        parser.error("name the model's path")
    return options, others


def _knows_drain(server: str, image: str) -> bool:
    """A vLLM without a release in its tag is taken for a current one."""
    release = re.search(r":v?(\d+)\.(\d+)\.", image)
    is_older = release is not None and (int(release[1]), int(release[2])) < _DRAINING_VLLM
    return server == "vllm" and not is_older


def main(arguments: list[str]) -> int:
    options, others = parse_arguments(arguments)
    name = options.served_model_name or options.model or options.path
    server = SERVERS[options.server]
    sys.stdout.write(_LABEL.format(server=server.name))
    if others:
        sys.stdout.write(f"options of {server.name} without effect here: {' '.join(others)}\n")
    sys.stdout.flush()
    blocks = options.num_gpu_blocks_override
    longest = min(options.max_model_len, _DEFAULTS.context_tokens, blocks * BLOCK_TOKENS)
    limits = EngineLimits(
        context_tokens=longest,
        requests=options.max_num_seqs,
        blocks=blocks,
        step_seconds=float(os.environ.get(_STEP, _DEFAULTS.step_seconds)),
    )
    adapters = [module.partition("=")[0] for module in options.lora_modules]
    engine = Engine(Network(name), limits, Metrics(name, server))
    form = "{adapter}" if server is VLLM else "{model}:{adapter}"
    api = CompletionApi([name, *adapters], engine, adapter_form=form)
    config = uvicorn.Config(
        api.application(), host="127.0.0.1", port=options.port, log_level="warning"
    )
    # SGLang finishes what it has, however long that takes.
    drain_seconds = float(options.shutdown_timeout or 0) if server is VLLM else None
    LanguageServer(config, api, engine, drain_seconds=drain_seconds).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
