"""Rules in the Common Expression Language, by the runtime of its authors."""

import functools
import logging
from collections.abc import Sequence
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_strings

from slipway_localcluster.schemas.schema import CelRule

logger = logging.getLogger(__name__)


@functools.cache
def _environment() -> Any:
    extensions = [ext_strings.ExtStrings()]
    return cel.NewEnv(variables={"self": cel.Type.DYN}, extensions=extensions)


@functools.cache
def _compile(expression: str) -> Any:
    """Compile a rule. None for a rule with Kubernetes functions that the runtime lacks, which is not checked. The
    runtime has no errors of its own.
    """
    try:
        return _environment().compile(expression)
    except RuntimeError:
        logger.warning("A rule of a schema cannot be checked: %s", expression)
        return None


@functools.cache
def _compile_all(rules: Sequence[CelRule]) -> Any:
    """One expression, because most of the time of a rule goes into handing the value over."""
    known = [rule.expression for rule in rules if _compile(rule.expression) is not None]
    return _compile(" && ".join(f"({expression})" for expression in known)) if known else None


def are_met(rules: Sequence[CelRule], value: Any) -> bool:
    """Return whether the rules are met. A rule that ends with an error is not met."""
    compiled = _compile_all(rules)
    return compiled is None or compiled.eval(data={"self": value}).value() is True
