from __future__ import annotations

import ctypes.util
import sys
import sysconfig
from pathlib import Path

import pytest

from slipway_localcluster import machine_check


def test_a_machine_that_runs_triton_passes_silently(capsys: pytest.CaptureFixture[str]) -> None:
    assert machine_check.main() == 0
    assert capsys.readouterr().err == ""


def test_a_missing_libpython_is_reported_with_the_fix(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", lambda _: None)
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    monkeypatch.setattr(ctypes.util, "find_library", lambda _: None)

    assert machine_check.main() == 1
    assert "apt install libpython3." in capsys.readouterr().err
