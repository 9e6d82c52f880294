"""Chooses a node for a pod, or explains why none fits: pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from slipway_localcluster.controllers import resources
from slipway_localcluster.errors import JsonObject

_SELECTOR_REASON = "node(s) didn't match Pod's node affinity/selector"
_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Placement:
    """Either a node or the reason why there is none."""

    node: str | None
    message: str


def place(
    pod: JsonObject,
    nodes: Sequence[JsonObject],
    used: Mapping[str, resources.Amounts],
    *,
    missing_claim: str = "",
) -> Placement:
    """Choose the most preferred of the nodes that fit, then the least loaded; `used` is by node name."""
    if missing_claim and nodes:
        reason = f'persistentvolumeclaim "{missing_claim}" not found'
        return Placement(None, f"0/{len(nodes)} nodes are available: {reason}.")
    requested = resources.sum_pod_requests(pod)
    reasons: Counter[str] = Counter()
    fitting: list[tuple[int, Decimal, str]] = []
    for node in nodes:
        name = str(node["metadata"]["name"])
        taken = used.get(name, {})
        objections = _objections(pod, requested, node, taken)
        reasons.update(objections)
        if not objections:
            free = _free_fraction(node, resources.add(taken, requested))
            fitting.append((-_preference(pod["spec"], node), -free, name))
    if fitting:
        return Placement(min(fitting)[-1], "")
    return Placement(None, _explain(len(nodes), reasons))


def _explain(node_count: int, reasons: Counter[str]) -> str:
    if not node_count:
        return "no nodes available to schedule pods"
    counted = sorted(f"{count} {reason}" for reason, count in reasons.items())
    return f"0/{node_count} nodes are available: {', '.join(counted)}."


def _objections(
    pod: JsonObject, requested: resources.Amounts, node: JsonObject, taken: resources.Amounts
) -> list[str]:
    """Return why the pod does not fit the node. As in Kubernetes, only the first filter that rejects the node is
    reported.
    """
    spec = node.get("spec") or {}
    tolerations = pod["spec"].get("tolerations") or []
    if spec.get("unschedulable") and not _is_tolerated(_UNSCHEDULABLE_TAINT, tolerations):
        return ["node(s) were unschedulable"]
    for taint in spec.get("taints") or ():
        if taint.get("effect") in _BLOCKING_EFFECTS and not _is_tolerated(taint, tolerations):
            named = f"{taint.get('key')}: {taint.get('value') or ''}"
            return [f"node(s) had untolerated taint {{{named}}}"]
    if not _is_selected(pod["spec"], node):
        return [_SELECTOR_REASON]
    return _lacking(requested, node, taken)


def _lacking(requested: resources.Amounts, node: JsonObject, taken: resources.Amounts) -> list[str]:
    allocatable = resources.read_allocatable(node)
    lacking = [
        name
        for name, amount in sorted(requested.items())
        if amount > 0 and taken.get(name, Decimal(0)) + amount > allocatable.get(name, Decimal(0))
    ]
    return ["Too many pods" if name == "pods" else f"Insufficient {name}" for name in lacking]


def _is_tolerated(taint: JsonObject, tolerations: Sequence[JsonObject]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key = toleration.get("key")
    is_any_value = toleration.get("operator") == "Exists"
    if not key:
        return is_any_value
    if key != taint.get("key"):
        return False
    return is_any_value or (toleration.get("value") or "") == (taint.get("value") or "")


def _is_selected(spec: JsonObject, node: JsonObject) -> bool:
    labels = node["metadata"].get("labels") or {}
    if not (spec.get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_matches_term(term, labels) for term in required.get("nodeSelectorTerms") or ())


def _preference(spec: JsonObject, node: JsonObject) -> int:
    """Return the sum of the weights of what the pod prefers and the node has."""
    labels = node["metadata"].get("labels") or {}
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return sum(
        int(term["weight"]) for term in preferred if _matches_term(term["preference"], labels)
    )


def _matches_term(term: JsonObject, labels: Mapping[str, str]) -> bool:
    expressions = term.get("matchExpressions") or []
    return bool(expressions) and all(_matches(item, labels) for item in expressions)


def _matches(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    value = labels.get(str(expression.get("key")))
    values = [str(item) for item in expression.get("values") or ()]
    tests: dict[str, Callable[[], bool]] = {
        "In": lambda: value in values,
        "NotIn": lambda: value not in values,
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
        "Gt": lambda: value is not None and int(value) > int(values[0]),
        "Lt": lambda: value is not None and int(value) < int(values[0]),
    }
    test = tests.get(str(expression.get("operator")))
    return test is not None and test()


def _free_fraction(node: JsonObject, taken: resources.Amounts) -> Decimal:
    """Return the mean free fraction of CPU and memory: the higher, the better."""
    allocatable = resources.read_allocatable(node)
    fractions = [
        (amount - taken.get(name, Decimal(0))) / amount
        for name, amount in allocatable.items()
        if name in ("cpu", "memory") and amount
    ]
    return sum(fractions, Decimal(0)) / len(fractions) if fractions else Decimal(0)
