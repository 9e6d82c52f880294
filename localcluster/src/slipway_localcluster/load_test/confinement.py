"""The confinement of a load test: its own network, processes and shared memory where the kernel allows it, and
limits of memory, processor time and file size everywhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import struct
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_NOSUID_NODEV = 2 | 4
_MS_REC_PRIVATE = (1 << 14) | (1 << 18)
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_MIB = 2**20
_MAX_FILE_BYTES = 256 * _MIB
_NOBODY = 65534
_MAX_DESCRIPTORS = 1024


def isolate(*, memory_mib: int, seconds: float) -> None:
    """Isolate this process and all that it starts: lowest priority, first choice of the OOM killer, an end with the
    caller. The first process that it starts afterwards leads a PID namespace, whose processes end with it, also
    those that left its group. Their shared memory is a file system of their own, which leaves nothing behind.
    """
    # Without threads, which a process may not start once its children have a PID namespace.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.nice(10)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    _limit(memory_mib, seconds)
    end_with_parent()
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    own = _CLONE_NEWNS | _CLONE_NEWIPC | _CLONE_NEWPID
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET | own) == 0:
        _map_to_nobody(user, group)
        libc.mount(b"none", b"/", None, _MS_REC_PRIVATE, None)
        size = f"size={memory_mib}m".encode()
        libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", _MS_NOSUID_NODEV, size)
        _start_loopback()
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _limit(memory_mib: int, seconds: float) -> None:
    """Limit each process. Triton reserves address space that it never uses, so the limit is on data; it stops an
    allocation that is too sudden for trial.py, which watches the sum.
    """
    cpu = round(seconds * (os.cpu_count() or 1)) + 1
    for what, most in (
        (resource.RLIMIT_DATA, 2 * memory_mib * _MIB),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, _MAX_FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, _MAX_DESCRIPTORS),
    ):
        highest = resource.getrlimit(what)[1]
        bounded = most if highest == resource.RLIM_INFINITY else min(most, highest)
        resource.setrlimit(what, (bounded, bounded))


def _map_to_nobody(user: int, group: int) -> None:
    """A file system of the namespace takes files of known users only; another than root has no privileges
    in programs that it starts.
    """
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_NOBODY} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{_NOBODY} {group} 1")


def _start_loopback() -> None:
    import fcntl  # noqa: PLC0415  not on every system

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        fcntl.ioctl(connection, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP) + bytes(22))
