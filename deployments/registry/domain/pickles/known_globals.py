"""Imports in pickles that are known to build data only.

Everything else counts as code. It is a list of what is allowed: a list of what is dangerous is never
complete, and two libraries keep such lists already (picklescan, modelscan).
"""

from __future__ import annotations

from typing import Final

_KNOWN: Final = frozenset(
    {
        "_codecs.encode",
        "builtins.bytearray",
        "builtins.bytes",
        "builtins.complex",
        "builtins.frozenset",
        "builtins.object",
        "builtins.range",
        "builtins.set",
        "builtins.slice",
        "collections.OrderedDict",
        "collections.defaultdict",
        "builtins.dict",
        "builtins.int",
        "builtins.list",
        "builtins.float",
        "builtins.str",
        "copyreg._reconstructor",
        "datetime.date",
        "datetime.datetime",
        "datetime.timedelta",
        "decimal.Decimal",
        "joblib.numpy_pickle.NumpyArrayWrapper",
        "numpy.dtype",
        "numpy.ndarray",
        "numpy.random.__RandomState_ctor",
        "numpy.random._pickle.__randomstate_ctor",
        "numpy.random._pickle.__bit_generator_ctor",
        "numpy.random._mt19937.MT19937",
        "sklearn.tree._tree.Tree",
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_tensor_v2",
    }
)
_NUMPY: Final = frozenset(
    f"{package}.{name}"
    for package in ("numpy.core", "numpy._core")
    for name in ("multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer")
)
_STORAGES: Final = (
    *("LongStorage", "FloatStorage", "HalfStorage", "DoubleStorage", "BFloat16Storage"),
    *("BoolStorage", "CharStorage", "ShortStorage", "IntStorage", "ByteStorage"),
)
_TORCH: Final = frozenset(f"torch.{name}" for name in (*_STORAGES, "Size", "device"))
# What TorchScript writes (torch/csrc/jit/serialization/pickler.cpp), and its reader alone understands.
_TORCH_SCRIPT: Final = frozenset(
    f"torch.jit._pickle.{name}"
    for name in (
        *("build_intlist", "build_doublelist", "build_boollist", "build_tensorlist"),
        *("build_tensor_from_id", "restore_type_tag"),
    )
)
# The archive's own classes. Python has no such module; classes of C++ libraries are further down in it.
_OWN_CLASSES: Final = "__torch__."
_LIBRARY_CLASSES: Final = "__torch__.torch.classes."
_BUILT_IN_CLASSES: Final = "__torch__.torch.classes.quantized."
# Estimators: classes whose attributes are set from the pickle, without a call into their code.
_ESTIMATORS: Final = frozenset(
    f"{module}.{name}{kind}"
    for module, names in (
        ("sklearn.ensemble._forest", ("RandomForest", "ExtraTrees")),
        ("sklearn.tree._classes", ("DecisionTree", "ExtraTree")),
    )
    for name in names
    for kind in ("Classifier", "Regressor")
)


def is_known(name: str) -> bool:
    """Whether importing and calling "module.name" builds data only."""
    if name.startswith(_OWN_CLASSES):
        return not name.startswith(_LIBRARY_CLASSES) or name.startswith(_BUILT_IN_CLASSES)
    return any(name in known for known in (_KNOWN, _NUMPY, _TORCH, _TORCH_SCRIPT, _ESTIMATORS))
