"""Which instance types a pod may run on, by its node selector and its required node affinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_LABEL: Final = "node.kubernetes.io/instance-type"
Json = Mapping[str, Any]


def list_instance_types(spec: Json) -> list[str]:
    """Return the instance types that a pod requires, in the order in which it names them. Empty if it takes any."""
    if selected := (spec.get("nodeSelector") or {}).get(_LABEL):
        return [str(selected)]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    names: list[str] = []
    for term in required.get("nodeSelectorTerms") or ():
        of_term = _in_term(term)
        if not of_term:
            # Terms are alternatives: this one takes any.
            return []
        names += of_term
    return list(dict.fromkeys(names))


def _in_term(term: Json) -> list[str]:
    return [
        str(value)
        for rule in term.get("matchExpressions") or ()
        if rule.get("key") == _LABEL and rule.get("operator") == "In"
        for value in rule.get("values") or ()
    ]
