"""supervisord: configuration, start, and the status of its programs."""

from __future__ import annotations

import shlex
import subprocess
import sys
import xmlrpc.client
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from supervisor.xmlrpc import SupervisorTransport

from slipway_demo import REPOSITORY
from slipway_demo.parts import Part
from slipway_demo.state import Folder, write_private

_GUARD = Path(__file__).with_name("guard.py")
_HEADER = """\
[unix_http_server]
file={socket}
chmod=0700

[supervisord]
nodaemon=true
silent=true
directory={repository}
pidfile={pid}
logfile={logs}/supervisord.log
logfile_maxbytes=5MB
childlogdir={logs}

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface

[supervisorctl]
serverurl=unix://{socket}
"""
# The order of start; parts end in the reverse order, one after the other.
# A part that cannot start yet is retried, a second later each time.
_PROGRAM = """
[program:{name}]
command={command}
autostart={autostart}
autorestart=true
priority={order}
startsecs=1
startretries=1000
stopsignal=TERM
stopasgroup=true
killasgroup=true
stopwaitsecs={stop_seconds}
redirect_stderr=true
stdout_logfile={logs}/{name}.log
stdout_logfile_maxbytes=10MB
stdout_logfile_backups=1
"""


def write_config(folder: Folder, parts: Sequence[Part]) -> None:
    header = _HEADER.format(
        socket=_escaped(folder.supervisor_socket),
        repository=_escaped(REPOSITORY),
        pid=_escaped(folder.supervisor_pid),
        logs=_escaped(folder.logs),
    )
    programs = [
        _PROGRAM.format(
            name=part.name,
            order=order,
            command=_escaped(shlex.join([sys.executable, "-IS", str(_GUARD), *part.command])),
            autostart="false" if part.needs else "true",
            stop_seconds=part.stop_seconds,
            logs=_escaped(folder.logs),
        )
        for order, part in enumerate(parts)
    ]
    write_private(folder.supervisor_config, header + "".join(programs))


def start(folder: Folder, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start it in its own session, so that Ctrl-C reaches only this program, which stops it in order."""
    with (folder.logs / "supervisord.out").open("wb") as output:
        return subprocess.Popen(
            [
                *(sys.executable, "-IS", str(_GUARD)),
                *(sys.executable, "-m", "supervisor.supervisord"),
                *("-c", str(folder.supervisor_config)),
            ],
            cwd=REPOSITORY,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class Control:
    """supervisord's own interface over its Unix socket."""

    def __init__(self, folder: Folder) -> None:
        self._url = f"unix://{folder.supervisor_socket}"

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return the status of each program. Empty while supervisord does not respond."""
        try:
            rows = cast("list[dict[str, Any]]", self._proxy().getAllProcessInfo())
        except (OSError, xmlrpc.client.Error):
            return {}
        return {row["name"]: row for row in rows}

    def start(self, name: str) -> None:
        do_wait = False
        self._proxy().startProcess(name, do_wait)

    def _proxy(self) -> Any:
        transport = SupervisorTransport(None, None, self._url)
        return xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport).supervisor


def _escaped(value: object) -> str:
    return str(value).replace("%", "%%")
