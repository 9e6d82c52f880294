"""Rules in the Common Expression Language, by the runtime of its authors."""

import functools
import logging
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_strings

logger = logging.getLogger(__name__)


@functools.cache
def _environment() -> Any:
    extensions = [ext_strings.ExtStrings()]
    return cel.NewEnv(variables={"self": cel.Type.DYN}, extensions=extensions)


@functools.cache
def _compile(expression: str) -> Any:
    """None for a rule with functions of Kubernetes that the runtime lacks; it is not checked. The
    runtime has no errors of its own.
    """
    try:
        return _environment().compile(expression)
    except RuntimeError:
        logger.warning("A rule of a schema cannot be checked: %s", expression)
        return None


def is_met(expression: str, value: Any) -> bool:
    """A rule that ends with an error is not met."""
    compiled = _compile(expression)
    return compiled is None or compiled.eval(data={"self": value}).value() is True
