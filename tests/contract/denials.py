"""What refuses the pods of a namespace: a quota, Pod Security, a policy of the cluster.

A named cluster is made to refuse them. The embedded server enforces none of these, so there the condition
is written that the ReplicaSet controller of a real server writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import wait_until

_POLICIES = "admissionregistration.k8s.io/v1"
_PODS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}
_SIDECAR = (
    'Object{spec: Object.spec{containers: [Object.spec.containers{name: "mesh-proxy", '
    'image: "registry.example/mesh-proxy:1"}]}}'
)
_ONLY_OURS = "images come from registry.example"
# Within the standard, and refused by each of the denials.
_PROBE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "probe"},
    "spec": {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "probe",
                "image": "docker.io/library/probe:1",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}


@dataclass(frozen=True, slots=True)
class Denial:
    """`objects` make a namespace refuse pods, with a message that has `quoted` in it; `explained` is how
    the portal's message begins.
    """

    name: str
    objects: Callable[[str], Sequence[dict[str, Any]]]
    quoted: str
    explained: str
    is_security_enforced: bool = False

    @contextmanager
    def enforced(self, somebody: Kubectl, namespace: str) -> Iterator[None]:
        """On a server that enforces it, from the first pod on."""
        if self.is_security_enforced:
            labels = {"pod-security.kubernetes.io/enforce": "restricted"}
            somebody.patch("namespace", namespace, patch={"metadata": {"labels": labels}})
        made = self.objects(namespace)
        somebody.apply(made)
        try:
            wait_until(
                lambda: self.quoted in _answer(somebody, namespace),
                lambda: _answer(somebody, namespace),
            )
            yield
        finally:
            for item in made:
                where = f"--namespace={namespace}"
                somebody.run("delete", item["kind"], item["metadata"]["name"], where)

    def message(self, pod: str) -> str:
        """As a real server writes it."""
        return f'pods "{pod}" is forbidden: {self.quoted}'


def _answer(somebody: Kubectl, namespace: str) -> str:
    """To a pod that is not made."""
    where = (f"--namespace={namespace}", "--dry-run=server", "--filename=-")
    try:
        return somebody.run("create", *where, stdin=json.dumps(_PROBE))
    except AssertionError as refused:
        return str(refused)


def _quota(namespace: str) -> Sequence[dict[str, Any]]:
    metadata = {"name": "none", "namespace": namespace}
    spec = {"hard": {"count/pods": "0", "pods": "0"}}
    return [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}]


def _sidecar(namespace: str) -> Sequence[dict[str, Any]]:
    """As a mesh adds a container to every pod, which knows nothing of the namespace's Pod Security."""
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _SIDECAR}}
    spec = {"mutations": [mutation], "reinvocationPolicy": "Never"}
    return _policy(namespace, "MutatingAdmissionPolicy", spec)


def _registry(namespace: str) -> Sequence[dict[str, Any]]:
    rule = {
        "expression": "object.spec.containers.all(c, c.image.startsWith('registry.example/'))",
        "message": _ONLY_OURS,
    }
    binding = {"validationActions": ["Deny"]}
    return _policy(namespace, "ValidatingAdmissionPolicy", {"validations": [rule]}, **binding)


def _policy(
    namespace: str, kind: str, spec: dict[str, Any], **binding: Any
) -> Sequence[dict[str, Any]]:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    matched = {"matchConstraints": {"resourceRules": [_PODS], "namespaceSelector": selector}}
    metadata = {"name": namespace}
    return [
        {
            "apiVersion": _POLICIES,
            "kind": kind,
            "metadata": metadata,
            "spec": {**matched, **spec, "failurePolicy": "Fail"},
        },
        {
            "apiVersion": _POLICIES,
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "spec": {"policyName": namespace, **binding},
        },
    ]


DENIALS = (
    Denial(
        "quota",
        _quota,
        "exceeded quota: none, requested: count/pods=1,pods=1, used: count/pods=0,pods=0, limited: "
        "count/pods=0,pods=0",
        "the namespace's quota is used up: free some, or ask a platform admin to raise it",
    ),
    Denial(
        "pod-security",
        _sidecar,
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container '
        '"mesh-proxy" must set securityContext.allowPrivilegeEscalation=false)',
        "a cluster policy rejects the pod",
        is_security_enforced=True,
    ),
    Denial(
        "policy", _registry, f"denied request: {_ONLY_OURS}", "a cluster policy rejects the pod"
    ),
)
