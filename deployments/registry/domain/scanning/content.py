"""The content of a file by its first bytes, whatever its name says."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

_PE_OFFSET_AT: Final = 0x3C
_TAR_MAGIC_AT: Final = 257
_EXECUTABLES: Final = (
    (b"\x7fELF", "an ELF executable"),
    (b"\xfe\xed\xfa\xce", "a Mach-O executable"),
    (b"\xfe\xed\xfa\xcf", "a Mach-O executable"),
    (b"\xce\xfa\xed\xfe", "a Mach-O executable"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O executable"),
    (b"\xca\xfe\xba\xbe", "a Java class or Mach-O executable"),
    (b"\0asm\x01\0\0\0", "a WebAssembly module"),
    (b"dex\n03", "an Android executable"),
    (b"#!/", "a script"),
    (b"#! /", "a script"),
    (b"<?php", "a script"),
    (b"@echo off", "a script"),
)
_ARCHIVES: Final = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"Rar!\x1a\x07", "rar"),
    (b"\x1f\x8b\x08", "gzip"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
_BZIP2: Final = b"1AY&SY"
# Suffixes that promise data: code under such a name is a lie. The others promise nothing.
_DATA_SUFFIXES: Final = frozenset(
    {
        *(
            ".onnx",
            ".safetensors",
            ".json",
            ".ubj",
            ".txt",
            ".md",
            ".csv",
            ".yaml",
            ".yml",
            ".pbtxt",
        ),
        *(".plan", ".engine", ".pb", ".h5", ".tl", ".model", ".xml", ".vocab", ".toml", ".gguf"),
    }
)


def executable(head: bytes) -> str:
    """Name the kind of executable, for example "an ELF executable". Empty if it is none."""
    for magic, name in _EXECUTABLES:
        if head.startswith(magic):
            return name
    return "a Windows executable" if _is_windows_executable(head) else ""


def archive(head: bytes) -> str:
    """Return the kind of archive or compression. Empty if it is none."""
    for magic, name in _ARCHIVES:
        if head.startswith(magic):
            return name
    if head.startswith(b"BZh") and head[4:10] == _BZIP2:
        return "bzip2"
    return "tar" if head[_TAR_MAGIC_AT : _TAR_MAGIC_AT + 5] == b"ustar" else ""


def promises_data(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in _DATA_SUFFIXES


def is_marked_pickle(head: bytes) -> bool:
    """Return whether the first bytes mark a pickle: protocols 2 and later begin with their number."""
    return len(head) > 2 and head[0] == 0x80 and 2 <= head[1] <= 5


def _is_windows_executable(head: bytes) -> bool:
    if not head.startswith(b"MZ"):
        return False
    at = int.from_bytes(head[_PE_OFFSET_AT : _PE_OFFSET_AT + 4], "little")
    return head[at : at + 4] == b"PE\0\0"
