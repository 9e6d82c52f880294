"""The rounds of an XGBoost model that are served: those that the user's own call predicts with.

The wrappers for scikit-learn (XGBClassifier, XGBRegressor, XGBRanker) stop at the attribute `best_iteration`;
`Booster.predict` uses all rounds unless it is called with a range. A file says which of the two saved it: the
wrappers write the attribute `scikit_learn`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from deployments.registry.domain.not_servable import NotServable, quote

_BEST: Final = "best_iteration"
# Releases before 2.0 wrote it too: trees of a class, which are the rounds times num_parallel_tree.
_BEST_LIMIT: Final = "best_ntree_limit"
_WRAPPER: Final = "scikit_learn"
_CLEAR: Final = "booster.set_attr(best_iteration=None) and save_model"


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a model. `served` of the `stored` rounds answer a request. `note` explains the choice;
    `is_doubtful` if another call of the library answers otherwise.
    """

    stored: int
    served: int
    note: str = ""
    is_doubtful: bool = False

    @property
    def is_cut(self) -> bool:
        return self.served < self.stored


def choose(
    attributes: Mapping[str, str], *, stored: int, trees_per_round: int, saved_by: str = ""
) -> Rounds:
    """Choose the rounds to serve. `saved_by` is the class that a registry names, such as
    xgboost.sklearn.XGBClassifier; empty if nothing but the file says it. Raises NotServable for attributes
    that the library refuses.
    """
    best = _find_best_round(attributes, stored, trees_per_round)
    if best is None or best == stored:
        return Rounds(stored, stored)
    is_wrapper = ".sklearn." in saved_by if saved_by else _WRAPPER in attributes
    if is_wrapper:
        return Rounds(
            stored,
            best,
            f"{best:,} of {stored:,} rounds are served, up to best_iteration ({best - 1:,}), as XGBoost's wrappers for "
            "scikit-learn predict",
        )
    return Rounds(
        stored,
        stored,
        f"all {stored:,} rounds are served, as Booster.predict does, although early stopping found its best after "
        f"{best:,}. To serve those only, save them: booster[:{best}].save_model('model.json')",
        is_doubtful=True,
    )


def _find_best_round(
    attributes: Mapping[str, str], stored: int, trees_per_round: int
) -> int | None:
    """Count the rounds up to the best one. None without early stopping."""
    if _BEST in attributes:
        best = _read_number(attributes, _BEST) + 1
    elif _BEST_LIMIT in attributes:
        limit = _read_number(attributes, _BEST_LIMIT)
        # 0 is what the library takes for no limit.
        if limit == 0:
            return None
        best, rest = divmod(limit, max(trees_per_round, 1))
        if rest:
            best = 0
    else:
        return None
    if not 0 < best <= stored:
        name = _BEST if _BEST in attributes else _BEST_LIMIT
        raise NotServable(
            f"The attribute {name} is {quote(attributes[name])}, and the file holds {stored:,} rounds, so XGBoost's own "
            f"predict fails. Set it to a round of the file, or remove it: {_CLEAR}."
        )
    return best


def _read_number(attributes: Mapping[str, str], name: str) -> int:
    try:
        return int(attributes[name])
    except ValueError:
        raise NotServable(
            f"The attribute {name} is {quote(attributes[name])}, not a number. Remove it: {_CLEAR}."
        ) from None
