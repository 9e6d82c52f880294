"""Statements of signed in-toto payloads on files: a model signature (OMS) or SLSA provenance."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deployments.attestations.domain.bundles import AttestationInvalid, MessageSignature

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
_STATEMENTS: Final = ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1")
_MODEL_SIGNATURE: Final = "https://model_signing/signature/v1.0"
_PROVENANCE_1: Final = "https://slsa.dev/provenance/v1"
_PROVENANCE_0: Final = "https://slsa.dev/provenance/v0.2"
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_LONGEST_FACT: Final = 500
# Files of Git, which no model server reads: a signature may leave them out by `ignore_paths`, others not.
_OF_GIT: Final = frozenset({".git", ".gitattributes", ".gitignore", ".github"})
# The one resource of a model that is a single file.
_SINGLE: Final = "."


@dataclass(frozen=True, slots=True)
class SignedFiles:
    """A model signature: all files of the model by path, with their SHA-256."""

    sha256: Mapping[str, str]
    # Top-level names that need no signature.
    ignored: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Provenance:
    """The provenance of files by SHA-256. A field is empty if the statement does not name it."""

    sha256: frozenset[str]
    builder: str
    build_type: str = ""
    source: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class VerifiedFiles:
    """The verified bytes of a version: SHA-256 by path, and of the archive that they came in, or empty."""

    files: Mapping[str, str]
    archive_sha256: str = ""


Statement = SignedFiles | Provenance


def parse(document: Any) -> Statement:
    """Parse the JSON payload of a DSSE envelope. Raises AttestationInvalid."""
    if not isinstance(document, Mapping) or document.get("_type") not in _STATEMENTS:
        raise AttestationInvalid("The signed payload is not an in-toto statement.")
    subjects = [_sha256_of(row) for row in _rows(document.get("subject"), "subject")]
    kind, predicate = document.get("predicateType"), document.get("predicate")
    if not isinstance(predicate, Mapping):
        raise AttestationInvalid("The statement has no predicate.")
    if kind == _MODEL_SIGNATURE:
        return _signed_files(subjects, predicate)
    if kind == _PROVENANCE_1:
        return _provenance_1(subjects, predicate)
    if kind == _PROVENANCE_0:
        return _provenance_0(subjects, predicate)
    raise AttestationInvalid(
        "The statement is neither a model signature (v1.0) nor SLSA provenance (v0.2 or v1)."
    )


def problem_with(
    statement: Statement | MessageSignature, artifact: VerifiedFiles, *, own_sha256: str
) -> str:
    """Return why the statement is not about exactly these files. Empty if it is.

    `own_sha256` is that of the attestation itself, which may lie among the files and never signs itself.
    """
    files = {path: sha for path, sha in artifact.files.items() if sha != own_sha256}
    if isinstance(statement, SignedFiles):
        kept = {
            path: sha
            for path, sha in files.items()
            if path.partition("/")[0] not in statement.ignored
        }
        return _compare(statement.sha256, kept)
    named = (
        frozenset({statement.sha256})
        if isinstance(statement, MessageSignature)
        else statement.sha256
    )
    if artifact.archive_sha256 and artifact.archive_sha256 in named:
        return ""
    missing = sorted(path for path, sha in files.items() if sha not in named)
    return f"It does not name the bytes of {_list(missing)}." if missing else ""


def _compare(signed: Mapping[str, str], files: Mapping[str, str]) -> str:
    if len(signed) == 1 and len(files) == 1:
        # People rename a single file; its bytes are what counts.
        same = set(signed.values()) == set(files.values())
        return "" if same else f"It signs other bytes than those of {_list(files)}."
    unsigned = sorted(set(files) - set(signed))
    absent = sorted(set(signed) - set(files))
    other = sorted(path for path in set(files) & set(signed) if files[path] != signed[path])
    parts = [
        f"does not sign {_list(unsigned)}" if unsigned else "",
        f"signs {_list(absent)}, which the version does not have" if absent else "",
        f"signs other bytes of {_list(other)}" if other else "",
    ]
    return f"It {'; it '.join(part for part in parts if part)}." if any(parts) else ""


def _signed_files(subjects: list[str], predicate: Mapping[str, Any]) -> SignedFiles:
    serialization = _part(predicate, "serialization")
    if serialization.get("method") != "files":
        raise AttestationInvalid("The signature covers parts of files. Sign whole files.")
    signed: dict[str, str] = {}
    root = hashlib.sha256()
    for row in _rows(predicate.get("resources"), "resources"):
        name, digest = row.get("name"), row.get("digest")
        if not isinstance(name, str) or name in signed:
            raise AttestationInvalid("The signature names a file twice, or one without a name.")
        if row.get("algorithm") != "sha256" or not _is_digest(digest):
            raise AttestationInvalid(f"The digest of {name[:80]} must be a SHA-256.")
        signed[name] = str(digest)
        root.update(bytes.fromhex(str(digest)))
    if subjects != [root.hexdigest()]:
        raise AttestationInvalid("The subject of the signature is not the digest of its files.")
    if _SINGLE in signed and len(signed) > 1:
        raise AttestationInvalid("The signature names a file twice, or one without a name.")
    ignored = serialization.get("ignore_paths")
    names = [name for name in ignored if isinstance(name, str)] if isinstance(ignored, list) else []
    return SignedFiles(signed, _OF_GIT & frozenset(names))


def _provenance_1(subjects: list[str], predicate: Mapping[str, Any]) -> Provenance:
    build, run = _part(predicate, "buildDefinition"), _part(predicate, "runDetails")
    sources = [
        (_text(row.get("uri")), _commit(row.get("digest")))
        for row in _list_of(build.get("resolvedDependencies"))
    ]
    source, commit = _first_source(sources)
    return Provenance(
        frozenset(subjects),
        builder=_require_builder(_part(run, "builder")),
        build_type=_text(build.get("buildType")),
        source=source,
        commit=commit,
    )


def _provenance_0(subjects: list[str], predicate: Mapping[str, Any]) -> Provenance:
    config = _part(_part(predicate, "invocation"), "configSource")
    sources = [(_text(config.get("uri")), _commit(config.get("digest")))] + [
        (_text(row.get("uri")), _commit(row.get("digest")))
        for row in _list_of(predicate.get("materials"))
    ]
    source, commit = _first_source(sources)
    return Provenance(
        frozenset(subjects),
        builder=_require_builder(_part(predicate, "builder")),
        build_type=_text(predicate.get("buildType")),
        source=source,
        commit=commit,
    )


def _first_source(sources: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the first source with a commit, else the first with an address."""
    rows = [row for row in sources if row[0]]
    return next((row for row in rows if row[1]), rows[0] if rows else ("", ""))


def _commit(digest: Any) -> str:
    values = digest if isinstance(digest, Mapping) else {}
    return _text(values.get("gitCommit") or values.get("sha1"))


def _require_builder(builder: Mapping[str, Any]) -> str:
    name = _text(builder.get("id"))
    if not name:
        raise AttestationInvalid("The provenance names no builder.")
    return name


def _sha256_of(row: Mapping[str, Any]) -> str:
    digest = row.get("digest")
    value = digest.get("sha256") if isinstance(digest, Mapping) else None
    if not _is_digest(value):
        raise AttestationInvalid("Each subject of the statement needs a SHA-256.")
    return str(value)


def _rows(value: Any, name: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not value:
        raise AttestationInvalid(f"The statement has no {name}.")
    if not all(isinstance(row, Mapping) for row in value):
        raise AttestationInvalid(f"{name} of the statement cannot be read.")
    return value


def _list_of(value: Any) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(value: Any) -> str:
    return value[:_LONGEST_FACT] if isinstance(value, str) else ""


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _list(paths: Iterable[str]) -> str:
    names = [path[:80] for path in paths]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
