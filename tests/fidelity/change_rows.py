"""Changes of objects: what is fixed once it exists."""

from __future__ import annotations

from tests.fidelity.change import (
    Changes,
    patch,
    with_values,
)
from tests.fidelity.objects import (
    ACCOUNT,
    AUTOSCALER,
    BUDGET,
    CLAIM,
    CONFIG,
    DEPLOYMENT,
    JOB,
    MODEL,
    POD,
    POLICY,
    QUOTA,
    RUNTIME,
    SECRET,
    SERVICE,
)
from tests.fidelity.row import Path, removed

ROWS = Changes()

_TEMPLATE: Path = ("spec", "template")
_LABELS: Path = (*_TEMPLATE, "metadata", "labels")
_OTHER = {"app": "other"}
_MODE: Path = ("metadata", "annotations", "serving.kserve.io/deploymentMode")
_AUTOSCALER: Path = ("metadata", "annotations", "serving.kserve.io/autoscalerClass")
_SELECTOR: Path = ("spec", "selector", "matchLabels")

for send, how in ((ROWS.applied, "applied"), (ROWS.replaced, "replaced")):
    send(f"{how}-deployment-selector", DEPLOYMENT, (_SELECTOR, _OTHER), (_LABELS, _OTHER))
    send(
        f"{how}-deployment-image",
        DEPLOYMENT,
        ((*_TEMPLATE, "spec", "containers", 0, "image"), "nginx:2"),
    )
    send(f"{how}-job-image", JOB, ((*_TEMPLATE, "spec", "containers", 0, "image"), "nginx:2"))
    send(f"{how}-job-template-label", JOB, (_LABELS, {"app": "fidelity", "more": "1"}))
    send(f"{how}-job-completions", JOB, (("spec", "completions"), 5))
    send(f"{how}-job-parallelism", JOB, (("spec", "parallelism"), 2))
    send(f"{how}-job-completion-mode", JOB, (("spec", "completionMode"), "Indexed"))
    send(f"{how}-job-suspend", JOB, (("spec", "suspend"), True))
    send(f"{how}-job-deadline", JOB, (("spec", "activeDeadlineSeconds"), 60))
    send(f"{how}-job-time-to-live", JOB, (("spec", "ttlSecondsAfterFinished"), 60))
    send(f"{how}-job-backoff-limit", JOB, (("spec", "backoffLimit"), 2))
ROWS.replaced("replaced-deployment-without-selector", DEPLOYMENT, removed("spec", "selector"))
ROWS.add(
    "patched-deployment-selector",
    DEPLOYMENT,
    patch(
        {
            "spec": {
                "selector": {"matchLabels": _OTHER},
                "template": {"metadata": {"labels": _OTHER}},
            }
        }
    ),
)
ROWS.add(
    "job-selector",
    JOB,
    patch(
        {
            "spec": {
                "selector": {"matchLabels": _OTHER},
                "template": {"metadata": {"labels": _OTHER}},
            }
        }
    ),
)
_INDEXED = with_values(JOB, [(("spec", "completionMode"), "Indexed"), (("spec", "parallelism"), 3)])
ROWS.applied("indexed-job-completions", _INDEXED, (("spec", "completions"), 5))
ROWS.applied(
    "elastic-indexed-job", _INDEXED, (("spec", "completions"), 5), (("spec", "parallelism"), 5)
)
_PER_INDEX = with_values(_INDEXED, [(("spec", "backoffLimitPerIndex"), 1)])
ROWS.applied("job-backoff-limit-per-index", _PER_INDEX, (("spec", "backoffLimitPerIndex"), 2))
_POLICY = {
    "rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ]
}
_GUARDED = with_values(JOB, [(("spec", "podFailurePolicy"), _POLICY)])
ROWS.applied("job-pod-failure-policy", _GUARDED, (("spec", "podFailurePolicy", "rules"), []))

_FIXED_CONFIG = with_values(CONFIG, [(("immutable",), True)])
_FIXED_SECRET = with_values(SECRET, [(("immutable",), True)])
for kind, fixed, mutable in (
    ("config-map", _FIXED_CONFIG, CONFIG),
    ("secret", _FIXED_SECRET, SECRET),
):
    ROWS.applied(f"fixed-{kind}-data", fixed, (("data", "key"), "b3RoZXI="))
    ROWS.applied(f"fixed-{kind}-more-data", fixed, (("data", "more"), "b3RoZXI="))
    ROWS.replaced(f"fixed-{kind}-no-longer", fixed, removed("immutable"))
    ROWS.applied(f"fixed-{kind}-false", fixed, (("immutable",), False))
    ROWS.applied(f"fixed-{kind}-label", fixed, (("metadata", "labels", "more"), "1"))
    ROWS.applied(
        f"{kind}-becomes-fixed", mutable, (("immutable",), True), (("data", "key"), "b3RoZXI=")
    )
ROWS.applied("fixed-config-map-binary", _FIXED_CONFIG, (("binaryData",), {"bytes": "b3RoZXI="}))
ROWS.applied("secret-type", SECRET, (("type",), "slipway.dev/keys"))
ROWS.replaced("replaced-secret-type", SECRET, (("type",), "slipway.dev/keys"))
ROWS.replaced("replaced-secret-without-type", SECRET, removed("type"))
ROWS.replaced("replaced-secret-data", SECRET, (("data", "key"), "b3RoZXI="))

ROWS.applied("service-cluster-ip-later", SERVICE, (("spec", "clusterIP"), "10.96.77.77"))
ROWS.applied("service-becomes-headless", SERVICE, (("spec", "clusterIP"), "None"))
_HEADLESS = with_values(SERVICE, [(("spec", "clusterIP"), "None")])
ROWS.applied("headless-service-gets-an-ip", _HEADLESS, (("spec", "clusterIP"), "10.96.77.77"))
ROWS.applied("headless-service-port", _HEADLESS, (("spec", "ports", 0, "port"), 81))
ROWS.replaced("replaced-service-without-cluster-ip", SERVICE, (("spec", "ports", 0, "port"), 81))
ROWS.applied("service-ips-of-two", SERVICE, (("spec", "clusterIPs"), ["10.96.77.77"]))
ROWS.applied("service-selector", SERVICE, (("spec", "selector"), _OTHER))

ROWS.applied("claim-mode-later", CLAIM, (("spec", "accessModes"), ["ReadWriteOnce"]))
ROWS.applied(
    "claim-larger-before-it-is-bound",
    CLAIM,
    (("spec", "resources", "requests", "storage"), "200Gi"),
)
ROWS.applied("claim-smaller", CLAIM, (("spec", "resources", "requests", "storage"), "50Gi"))
ROWS.applied("claim-class-later", CLAIM, (("spec", "storageClassName"), "fast"))
ROWS.applied("claim-label", CLAIM, (("metadata", "labels", "more"), "1"))
ROWS.applied("quota-scopes", QUOTA, (("spec", "scopes"), ["BestEffort"]))
ROWS.applied("quota-amount", QUOTA, (("spec", "hard", "pods"), "7"))

ROWS.applied("budget-selector-later", BUDGET, (("spec", "selector", "matchLabels"), _OTHER))
ROWS.applied("autoscaler-target-later", AUTOSCALER, (("spec", "scaleTargetRef", "name"), "other"))
ROWS.applied("policy-selector-later", POLICY, (("spec", "podSelector"), {}))
ROWS.applied("account-token-later", ACCOUNT, (("automountServiceAccountToken",), True))
ROWS.applied("runtime-format-later", RUNTIME, (("spec", "supportedModelFormats", 0, "name"), "b"))
ROWS.applied("service-deployment-mode-later", MODEL, (_MODE, "Knative"))
ROWS.applied("service-autoscaler-later", MODEL, (_AUTOSCALER, "none"))
ROWS.applied(
    "service-storage-later", MODEL, (("spec", "predictor", "model", "storageUri"), "s3://b/c/")
)

_CONTAINER: Path = ("spec", "containers", 0)
ROWS.applied("pod-image-later", POD, ((*_CONTAINER, "image"), "nginx:2"))
ROWS.applied("pod-command-later", POD, ((*_CONTAINER, "command"), ["true"]))
ROWS.applied("pod-environment-later", POD, ((*_CONTAINER, "env"), [{"name": "A", "value": "1"}]))
ROWS.applied(
    "pod-more-containers",
    POD,
    (("spec", "containers"), [*POD["spec"]["containers"], {"name": "b", "image": "b"}]),
)
ROWS.applied("pod-service-account-later", POD, (("spec", "serviceAccountName"), "other"))
ROWS.applied("pod-grace-later", POD, (("spec", "terminationGracePeriodSeconds"), 5))
ROWS.applied("pod-deadline-later", POD, (("spec", "activeDeadlineSeconds"), 5))
ROWS.applied(
    "pod-toleration-later", POD, (("spec", "tolerations"), [{"key": "a", "operator": "Exists"}])
)
ROWS.applied("pod-label-later", POD, (("metadata", "labels"), {"app": "fidelity"}))
