"""Read a pickle symbolically: what it would import becomes a Symbol, what it would call a Made.

The opcodes are followed as the real unpickler follows them, so that names built by memo tricks, and names
behind the raw arrays that joblib writes between opcodes, are listed too. Nothing of the file is imported or
called. The only real objects are containers, text, numbers, and NumPy's dtypes and plain arrays.

Runs in the sandbox: a pickle can be slow and large.
"""

from __future__ import annotations

import _compat_pickle
import io
import math
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, ClassVar, Final, cast

import numpy as np

ARRAY_WRAPPER: Final = "joblib.numpy_pickle.NumpyArrayWrapper"
_DTYPE: Final = "numpy.dtype"
_RECONSTRUCT: Final = frozenset(
    {"numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"}
)
_SCALAR: Final = frozenset({"numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar"})
_FROM_BUFFER: Final = frozenset(
    {"numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer"}
)
# How protocols before 3 write bytes.
_BYTES: Final = frozenset({"_codecs.encode", "builtins.bytes"})
# How protocols 0 and 1 write objects: class, base and its value.
_RECONSTRUCTOR: Final = "copyreg._reconstructor"
_MOST_NESTED: Final = 4


class MalformedPickle(Exception):
    """The stream breaks off, or is not a pickle. What it would do before that is in `names`."""


@dataclass(eq=False, repr=False, slots=True)
class Symbol:
    """The name of an import: "module.name"."""

    name: str


@dataclass(eq=False, repr=False, slots=True)
class Made:
    """The result of a call. `state`, `items` and `entries` are what is set on it afterwards."""

    maker: Any
    arguments: tuple[Any, ...] = ()
    state: Any = None
    items: list[Any] = field(default_factory=list)
    entries: list[tuple[Any, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.maker.name if isinstance(self.maker, Symbol) else ""

    def append(self, item: Any) -> None:
        self.items.append(item)

    def extend(self, items: list[Any]) -> None:
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.entries.append((key, value))


@dataclass(frozen=True, slots=True)
class PickleReading:
    """The content of a pickle that was read without running it. `names` are all imports, sorted; `calls` those
    of them that are called. `problem` is empty if the stream was read to its end.
    """

    value: Any
    names: tuple[str, ...]
    calls: tuple[str, ...] = ()
    problem: str = ""
    # Where raw arrays lie between the opcodes: begin and end.
    arrays: tuple[tuple[int, int], ...] = ()


def read(file: IO[bytes], *, size: int) -> PickleReading:
    """Read all pickles of the file; `value` is that of the first. `size` is the file's, in bytes."""
    names: dict[str, bool] = {}
    values: list[Any] = []
    arrays: list[tuple[int, int]] = []
    problem = ""
    while file.tell() < size:
        try:
            values.append(_SymbolicUnpickler(file, size, names, arrays).load())
        except (MalformedPickle, pickle.UnpicklingError, struct.error) as error:
            problem = _describe(error)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            problem = _describe(error)
        except (EOFError, MemoryError) as error:
            problem = _describe(error)
        if problem:
            break
    if problem and values:
        problem = "bytes follow the end of the pickle that are not a pickle"
    calls = tuple(sorted(name for name, is_called in names.items() if is_called))
    return PickleReading(
        values[0] if values else None, tuple(sorted(names)), calls, problem, tuple(arrays)
    )


def _describe(error: Exception) -> str:
    explained = (MalformedPickle, pickle.UnpicklingError, struct.error)
    is_explained = isinstance(error, explained) and str(error)
    return f"the pickle is malformed: {str(error)[:100] if is_explained else type(error).__name__}"


class _SymbolicUnpickler(pickle._Unpickler):
    """The unpickler in Python, with every opcode replaced that imports, calls or sets attributes."""

    # Set by the base class while it loads.
    proto: int
    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]
    read: Callable[[int], bytes]
    readline: Callable[[], bytes]
    # Maps an opcode to a function.
    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)

    def __init__(
        self,
        file: IO[bytes],
        size: int,
        names: dict[str, bool],
        arrays: list[tuple[int, int]],
        depth: int = 0,
    ) -> None:
        super().__init__(file, fix_imports=True, encoding="latin1")
        self._raw, self._size, self._depth = file, size, depth
        self._names, self._arrays = names, arrays

    def find_class(self, module: str, name: str) -> Any:
        if self.proto < 3:
            module, name = _in_python_3(module, name)
        self._names.setdefault(f"{module}.{name}", False)
        return Symbol(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        """Return the weights of PyTorch, by the name of their file."""
        return Made("persistent", (pid,))

    def reduce(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], arguments)

    def new(self) -> None:
        arguments = self.stack.pop()
        maker = self.stack.pop()
        self.append(self._call(maker, arguments))

    def new_with_keywords(self) -> None:
        keywords = self.stack.pop()
        arguments = self.stack.pop()
        maker = self.stack.pop()
        self.append(self._call(maker, (*_tuple(arguments), keywords)))

    def instance(self) -> None:
        module = self.readline()[:-1].decode("ascii")
        name = self.readline()[:-1].decode("ascii")
        self.append(self._call(self.find_class(module, name), tuple(self.pop_mark())))

    def object(self) -> None:
        arguments = self.pop_mark()
        maker = arguments.pop(0)
        self.append(self._call(maker, tuple(arguments)))

    def build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if isinstance(target, np.dtype) and isinstance(state, tuple):
            cast("Any", target).__setstate__(state)
        elif isinstance(target, Made):
            target.state = state
            self.stack[-1] = self._array(target, state)

    def allocate(self) -> None:
        """Read a bytearray, checking its size: the real unpickler allocates whatever size the file states."""
        (length,) = np.frombuffer(self.read(8), "<u8")
        self._require(int(length))
        self.append(bytearray(self.read(int(length))))

    def _call(self, maker: Any, arguments: Any) -> Any:
        arguments = _tuple(arguments)
        name = maker.name if isinstance(maker, Symbol) else ""
        if name:
            self._names[name] = True
        if name == _DTYPE and arguments and isinstance(arguments[0], str):
            return np.dtype(arguments[0])
        if name in _FROM_BUFFER and len(arguments) == 4:
            return _from_buffer(*arguments)
        if name in _BYTES:
            return _bytes(arguments)
        if name in _SCALAR and len(arguments) == 2 and isinstance(arguments[0], np.dtype):
            return _from_buffer(arguments[1], arguments[0], (), "C")[()]
        if name == _RECONSTRUCTOR and len(arguments) == 3:
            return Made(arguments[0])
        return Made(maker, arguments)

    def _array(self, target: Made, state: Any) -> Any:
        """Return the array that the object and its state stand for; the object itself where there is none."""
        if target.name == ARRAY_WRAPPER and isinstance(state, dict):
            return self._raw_array(state)
        if target.name in _RECONSTRUCT and isinstance(state, tuple) and len(state) == 5:
            _, shape, dtype, is_fortran, body = state
            return _from_buffer(body, dtype, shape, "F" if is_fortran else "C")
        return target

    def _raw_array(self, state: dict[str, Any]) -> Any:
        """Read an array whose bytes joblib writes after the object that describes it."""
        dtype, shape = state["dtype"], _shape(state["shape"])
        if not isinstance(dtype, np.dtype):
            raise MalformedPickle("an array without a dtype")
        if dtype.hasobject:
            if self._depth >= _MOST_NESTED:
                raise MalformedPickle("arrays of objects are nested too deep")
            nested = _SymbolicUnpickler(
                self._raw, self._size, self._names, self._arrays, self._depth + 1
            )
            return nested.load()
        begin = self._raw.tell()
        if state.get("numpy_array_alignment_bytes"):
            padding = self._raw.read(1)
            self._raw.read(padding[0] if padding else 0)
        length = math.prod(shape) * dtype.itemsize
        self._require(length)
        body = self._raw.read(length)
        self._arrays.append((begin, self._raw.tell()))
        return _from_buffer(body, dtype, shape, state.get("order", "C"))

    def _require(self, length: int) -> None:
        if length > self._size - self._raw.tell() + io.DEFAULT_BUFFER_SIZE * 8:
            raise MalformedPickle("it states more bytes than the file has")

    for _opcode, _replacement in (
        (pickle.REDUCE, reduce),
        (pickle.NEWOBJ, new),
        (pickle.NEWOBJ_EX, new_with_keywords),
        (pickle.INST, instance),
        (pickle.OBJ, object),
        (pickle.BUILD, build),
        (pickle.BYTEARRAY8, allocate),
    ):
        dispatch[_opcode[0]] = _replacement


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _bytes(arguments: tuple[Any, ...]) -> bytes:
    if not arguments:
        return b""
    match arguments:
        case (str(text), "latin1" | "latin-1"):
            return text.encode("latin1")
    raise MalformedPickle("bytes are encoded in an unknown way")


def _shape(value: Any) -> tuple[int, ...]:
    dims = tuple(int(dim) for dim in _tuple(value))
    if any(dim < 0 for dim in dims):
        raise MalformedPickle("an array has a negative dimension")
    return dims


def _from_buffer(body: Any, dtype: Any, shape: Any, order: Any) -> Any:
    """Return the array; objects of it stay a list, because they are not in the buffer."""
    if not isinstance(dtype, np.dtype):
        raise MalformedPickle("an array without a dtype")
    if dtype.hasobject:
        return body
    data = body.encode("latin1") if isinstance(body, str) else body
    return np.frombuffer(data, dtype).reshape(_shape(shape), order="F" if order == "F" else "C")


def _in_python_3(module: str, name: str) -> tuple[str, str]:
    """Rename what Python 2 pickled, as the real unpickler does."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[(module, name)]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name
