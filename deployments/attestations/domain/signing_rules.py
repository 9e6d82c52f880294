"""The requirements of a signing rule on a version's attestations: a pure decision."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class SigningRequirement:
    """A signing rule. Empty tuples match anything. `builders` are patterns with *, one of which the provenance must
    match.
    """

    name: str
    signer_ids: tuple[int, ...] = ()
    needs_provenance: bool = False
    builders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trusted:
    """An attestation that a trusted signer made about exactly the version's files. `builder` is empty for
    a signature.
    """

    signer_id: int
    is_provenance: bool
    builder: str = ""


def problem_with(rule: SigningRequirement, given: Iterable[Trusted]) -> str:
    """Return what the version lacks, as the end of a sentence ("vision/x:3 …"). Empty if it satisfies the rule."""
    rows = [row for row in given if not rule.signer_ids or row.signer_id in rule.signer_ids]
    if not any(not row.is_provenance for row in rows):
        return "has no signature of a signer that the rule accepts"
    if not rule.needs_provenance:
        return ""
    builders = [row.builder for row in rows if row.is_provenance]
    if not builders:
        return "has no provenance of a signer that the rule accepts"
    if rule.builders and not any(
        fnmatchcase(builder, pattern) for builder in builders for pattern in rule.builders
    ):
        return f"has provenance of the builder {builders[0]}, which the rule does not accept"
    return ""
