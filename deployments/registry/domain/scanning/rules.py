"""Our own rules: what the bytes of a file are, by magic numbers and a symbolic reading of pickles.

Change VERSION with every change of a rule, here or in what it uses: versions are then scanned again.
"""

from __future__ import annotations

from typing import IO, Final

from deployments.registry.domain.not_servable import printable
from deployments.registry.domain.scanning import archives, content, pickle_rules, saved_model_rules
from deployments.registry.domain.scanning.findings import Findings

NAME: Final = "rules"
VERSION: Final = "2"
HEAD_BYTES: Final = 4096
_LONGEST_NAME: Final = 100


def scan(file: IO[bytes], *, size: int, name: str, is_pickle: bool) -> Findings:
    """Scan a file by the portal's own rules. `name` is the name that the uploader gave it; `is_pickle`: its
    format is one of pickles.
    """
    findings = Findings()
    head = file.read(HEAD_BYTES)
    shown = printable(name)[-_LONGEST_NAME:]
    if kind := content.executable(head):
        findings.runs(f"{shown}, {kind}")
    archive = content.archive(head)
    _scan_zip(file, archive, size, findings)
    if archive != "zip" and (is_pickle or pickle_rules.may_be_pickled(name, head)):
        file.seek(0)
        pickle_rules.scan(file, size, head, is_pickle=is_pickle, findings=findings)
    elif archive not in ("", "zip"):
        findings.cannot_read(f"{shown} is a {archive} archive, whose content is not read")
    if saved_model_rules.applies_to(name):
        saved_model_rules.scan(file, size, findings)
    if content.promises_data(name) and (is_pickle or archive):
        findings.runs(f"{shown}, whose name promises data")
    return findings


def _scan_zip(file: IO[bytes], kind: str, size: int, findings: Findings) -> None:
    archive = archives.open_zip(file)
    if archive is None:
        if kind == "zip":
            findings.cannot_read("the archive is damaged")
        return
    with archive:
        if kind != "zip":
            first = printable(archive.infolist()[0].filename)[:60]
            findings.runs(f"a zip archive behind other content ({first})")
        archives.scan(archive, size, findings)
