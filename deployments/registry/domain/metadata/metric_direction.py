"""Whether a higher value of a metric is better, derived from its name."""

from __future__ import annotations

import re
from typing import Final

_HIGHER: Final = frozenset(
    [
        "accuracy",
        "acc",
        "f1",
        "f2",
        "auc",
        "auroc",
        "auprc",
        "precision",
        "recall",
        "sensitivity",
        "specificity",
        "map",
        "ap",
        "iou",
        "miou",
        "dice",
        "jaccard",
        "bleu",
        "rouge",
        "meteor",
        "r2",
        "ndcg",
        "mrr",
        "kappa",
        "mcc",
        "psnr",
        "ssim",
        "throughput",
        "hits",
        "top1",
        "top5",
    ]
)
_LOWER: Final = frozenset(
    [
        "loss",
        "error",
        "err",
        "latency",
        "rmse",
        "mse",
        "mae",
        "mape",
        "smape",
        "rmsle",
        "perplexity",
        "ppl",
        "wer",
        "cer",
        "ter",
        "fid",
        "eer",
        "brier",
        "logloss",
        "nll",
    ]
)


def is_higher_better(name: str) -> bool | None:
    """Return whether higher values of a metric are better, by its name. None if the name is unknown or
    ambiguous, as in accuracy_loss.
    """
    parts = set(re.findall(r"[a-z]+[0-9]*", name.lower()))
    higher, lower = bool(parts & _HIGHER), bool(parts & _LOWER)
    return higher if higher != lower else None


def tone(name: str, before: object, after: object) -> str:
    """Return the tone of a change: "good", "bad", or "" if unchanged or of unknown direction.

    Settings have dotted names and no direction.
    """
    better = None if "." in name else is_higher_better(name)
    old, new = _number(before), _number(after)
    if better is None or old is None or new is None or old == new:
        return ""
    return "good" if (new > old) == better else "bad"


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
