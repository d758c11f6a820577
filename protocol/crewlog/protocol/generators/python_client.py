"""The Python client's typed face: its results, and the methods of the blocking and of the asyncio client."""

from __future__ import annotations

import textwrap
from collections import defaultdict

import msgspec
from msgspec import inspect

from crewlog.protocol import records, results
from crewlog.protocol.errors import BY_KIND
from crewlog.protocol.generators.shapes import (
    HEADER,
    NAMES,
    bare,
    choices,
    default_of,
    doc_of,
    params_struct,
    record_of,
    result_type,
    snake,
    struct_of,
    structs_in,
)
from crewlog.protocol.methods import METHODS, NOTIFICATIONS, Method

WIDTH = 140
_MODULES = {records.__name__: "records", results.__name__: "wire"}


# --- results ---


def results_module() -> str:
    """`crewlog/client/results.py`."""
    structs = structs_in([result_type(name) for name in METHODS] + [struct_of(item.params) for item in NOTIFICATIONS.values()])
    text = [
        f'"""What the methods give, with stored records as classes.\n\n{HEADER}\n"""\n',
        "from __future__ import annotations\n",
        "import msgspec",
        "from msgspec import Raw\n",
        "from crewlog.client.stored import Json, Reader, Stored, json_value, nothing, optional",
        "from crewlog.protocol import records",
        "from crewlog.protocol import results as wire\n",
    ]
    stored = [struct for struct in structs if struct.cls.__name__ in NAMES]
    text += [_stored_class(struct) for struct in stored]
    text += [_typed_struct(struct) for struct in structs if struct not in stored and _holds_record(struct)]
    text.append("# How the result of each method, and each notification, is read.\n")
    text += [f"{reader_name(name)} = {_reader(result_type(name))}" for name in METHODS]
    text += [f"{reader_name(name)} = {_reader(struct_of(item.params))}" for name, item in NOTIFICATIONS.items()]
    return "\n".join(text) + "\n"


def reader_name(method: str) -> str:
    """`task/claimNext` to `TASK_CLAIM_NEXT`."""
    return snake(method.replace("/", "_")).upper()


def _holds_record(type_: inspect.Type) -> bool:
    """Whether a record stands somewhere inside, not counting what a record itself holds."""
    type_ = bare(type_)
    if record_of(type_) is not None:
        return True
    if isinstance(type_, inspect.ListType):
        return _holds_record(type_.item_type)
    if isinstance(type_, inspect.DictType):
        return _holds_record(type_.value_type)
    if isinstance(type_, inspect.UnionType):
        return any(_holds_record(item) for item in type_.types)
    if isinstance(type_, inspect.StructType):
        return any(_holds_record(field.type) for field in type_.fields)
    return False


def _stored_class(struct: inspect.StructType) -> str:
    source = f"records.{struct.cls.__name__}"
    lines = [
        f"\nclass {NAMES[struct.cls.__name__]}(Stored[{source}]):",
        _docstring(doc_of(struct.cls), 4),
        "",
        "    __slots__ = ()",
        f"    _read = Reader({source})",
    ]
    for field in struct.fields:
        value = _unwrap(f"self.view.{field.name}", field.type)
        lines += ["", "    @property", f"    def {snake(field.name)}(self) -> {_view_annotation(field.type)}:", f"        return {value}"]
    return "\n".join(lines) + "\n"


def _view_annotation(type_: inspect.Type) -> str:
    type_ = bare(type_)
    if isinstance(type_, inspect.RawType):
        return "Json"
    if isinstance(type_, inspect.DictType) and isinstance(bare(type_.value_type), inspect.RawType):
        return "dict[str, Json]"
    return _annotation(type_)


def _unwrap(value: str, type_: inspect.Type) -> str:
    type_ = bare(type_)
    if record_of(type_) is None and isinstance(type_, inspect.RawType):
        return f"json_value({value})"
    if isinstance(type_, inspect.DictType) and isinstance(bare(type_.value_type), inspect.RawType):
        return f"{{key: json_value(item) for key, item in {value}.items()}}"
    return _converted(value, type_)


def _typed_struct(struct: inspect.StructType) -> str:
    name = struct.cls.__name__
    lines = [f"\nclass {name}(msgspec.Struct, kw_only=True):", _docstring(doc_of(struct.cls) or f"The result `{name}`.", 4), ""]
    lines += [f"    {field.name}: {_annotation(field.type)}" for field in struct.fields]
    lines += [
        "",
        "    @classmethod",
        f"    def of(cls, source: wire.{name}) -> {name}:",
        "        return cls(",
        *(f"            {field.name}={_converted(f'source.{field.name}', field.type)}," for field in struct.fields),
        "        )",
        "",
        "    @classmethod",
        f"    def read(cls, raw: Raw | bytes) -> {name}:",
        f"        return cls.of(_read_{snake(name)}(raw))",
        "",
        "",
        f"_read_{snake(name)} = Reader(wire.{name})",
    ]
    return "\n".join(lines) + "\n"


def _annotation(type_: inspect.Type) -> str:
    """How the client sees a type."""
    type_ = bare(type_)
    record = record_of(type_)
    if record is not None:
        return NAMES[record]
    if isinstance(type_, inspect.StructType):
        name = type_.cls.__name__
        return name if _holds_record(type_) else f"{_MODULES[type_.cls.__module__]}.{name}"
    if isinstance(type_, inspect.ListType):
        return f"list[{_annotation(type_.item_type)}]"
    if isinstance(type_, inspect.DictType):
        return f"dict[str, {_annotation(type_.value_type)}]"
    if isinstance(type_, inspect.UnionType):
        return " | ".join([*map(_annotation, choices(type_)[0]), *(["None"] if choices(type_)[1] else [])])
    return _scalar(type_)


def _scalar(type_: inspect.Type) -> str:
    if isinstance(type_, inspect.LiteralType):
        return f"Literal[{', '.join(repr(value) for value in type_.values)}]".replace("'", '"')
    names: dict[type[inspect.Type], str] = {
        inspect.StrType: "str",
        inspect.IntType: "int",
        inspect.FloatType: "float",
        inspect.BoolType: "bool",
        inspect.NoneType: "None",
        inspect.RawType: "Raw",
    }
    return names[type(type_)]


def _converted(value: str, type_: inspect.Type) -> str:
    """The expression that makes the client's view of a value of the wire."""
    type_ = bare(type_)
    record = record_of(type_)
    if record is not None:
        return f"{NAMES[record]}({value})"
    if not _holds_record(type_):
        return value
    if isinstance(type_, inspect.StructType):
        return f"{type_.cls.__name__}.of({value})"
    if isinstance(type_, inspect.ListType):
        return f"[{_converted('item', type_.item_type)} for item in {value}]"
    if isinstance(type_, inspect.UnionType):
        return f"None if {value} is None else {_converted(value, choices(type_)[0][0])}"
    raise TypeError(f"no rule for {type_}")


def _reader(type_: inspect.Type) -> str:
    record = record_of(type_)
    if isinstance(type_, inspect.NoneType):
        return "nothing"
    if isinstance(type_, inspect.UnionType):
        return f"optional({_reader(choices(type_)[0][0])})"
    if record is not None:
        return NAMES[record]
    if isinstance(type_, inspect.StructType) and _holds_record(type_):
        return f"{type_.cls.__name__}.read"
    return f"Reader({_annotation(type_)})"


# --- methods ---


def api_module(*, asynchronous: bool) -> str:
    """`crewlog/client/_blocking_api.py` and `_async_api.py`: the same but for `async` and `await`."""
    groups: dict[str, list[Method]] = defaultdict(list)
    for method in METHODS.values():
        groups[method.name.partition("/")[0] if "/" in method.name else "crewlog"].append(method)
    kind = "asyncio" if asynchronous else "blocking"
    text = [
        f'"""The methods of the {kind} client.\n\n{HEADER}\n"""\n',
        "from __future__ import annotations\n",
        "from collections.abc import Callable, Mapping, Sequence",
        "from typing import Literal, Protocol, TypeVar\n",
        "from msgspec import Raw\n",
        "from crewlog.client import results",
        _imports(),
        "from crewlog.client.stored import Json, NewEntry",
        "from crewlog.protocol import results as wire\n",
        'T = TypeVar("T")\n',
        "\nclass Call(Protocol):",
        '    """Sends a request; reads its result. `timeout` in seconds; None waits as long as it takes."""\n',
        f"    {_def(asynchronous)} __call__(",
        "        self, method: str, params: Mapping[str, object], read: Callable[[Raw], T], timeout: float | None",
        "    ) -> T: ...\n",
    ]
    for group, methods in groups.items():
        if group != "crewlog":
            text.append(_group_class(group, methods, asynchronous=asynchronous))
    text += [
        "\nclass Methods:",
        '    """All methods: `session`, `task`, `plan` and so on hold those that begin with it on the wire."""\n',
        "    def __init__(self, call: Call) -> None:",
        "        self._call = call",
        *(f"        self.{group} = {_class_name(group)}(call)" for group in groups if group != "crewlog"),
        "",
    ]
    text += [_method(method, asynchronous=asynchronous) for method in groups["crewlog"]]
    return "\n".join(text) + "\n"


def _def(asynchronous: bool) -> str:
    return "async def" if asynchronous else "def"


def _imports() -> str:
    structs = structs_in([result_type(name) for name in METHODS])
    names = {NAMES.get(struct.cls.__name__, struct.cls.__name__) for struct in structs if _is_named(struct)}
    used = {word for name in METHODS for word in _annotation(result_type(name)).replace("|", " ").split()}
    return f"from crewlog.client.results import {', '.join(sorted(names & used))}"


def _is_named(struct: inspect.StructType) -> bool:
    return struct.cls.__name__ in NAMES or _holds_record(struct)


def _class_name(group: str) -> str:
    return f"{group.capitalize()}Methods"


def _group_class(group: str, methods: list[Method], *, asynchronous: bool) -> str:
    lines = [
        f"\nclass {_class_name(group)}:",
        f'    """`{group}/…`"""\n',
        "    def __init__(self, call: Call) -> None:",
        "        self._call = call\n",
    ]
    return "\n".join([*lines, *(_method(method, asynchronous=asynchronous) for method in methods)])


def _method(method: Method, *, asynchronous: bool) -> str:
    fields = params_struct(method.name).fields
    required = [f"{field.name}: {_param_annotation(field.type)}" for field in fields if field.required]
    optional = [f"{field.name}: {_optional_param(field)}" for field in fields if not field.required]
    given = ", ".join(f'"{field.encode_name}": {field.name}' for field in fields)
    signature = ", ".join(["self", *required, "*", *optional, "timeout: float | None = None"])
    name = snake(method.name.rpartition("/")[2])
    waits = "await " if asynchronous else ""
    return "\n".join(
        [
            f"    {_def(asynchronous)} {name}({signature}) -> {_annotation(result_type(method.name))}:",
            _docstring(_method_doc(method), 8),
            f'        return {waits}self._call("{method.name}", {{{given}}}, results.{reader_name(method.name)}, timeout)',
            "",
        ]
    )


def _method_doc(method: Method) -> str:
    params_doc = doc_of(method.params) if method.params.__name__ != "NoParams" else ""
    raised = ", ".join(f"`{BY_KIND[kind].exception.__name__}`" for kind in method.errors)
    text = [method.doc, params_doc, f"Raises {raised}." if raised else ""]
    return "\n\n".join(_with_python_names(part, method) for part in text if part)


def _with_python_names(text: str, method: Method) -> str:
    for field in params_struct(method.name).fields:
        text = text.replace(f"`{field.encode_name}`", f"`{field.name}`")
    return text


def _param_annotation(type_: inspect.Type) -> str:
    type_ = bare(type_)
    if isinstance(type_, inspect.RawType) or record_of(type_) is not None:
        return "Json"
    if isinstance(type_, inspect.StructType):
        return type_.cls.__name__
    if isinstance(type_, inspect.ListType):
        return f"Sequence[{_param_annotation(type_.item_type)}]"
    if isinstance(type_, inspect.DictType):
        return f"Mapping[str, {_param_annotation(type_.value_type)}]"
    if isinstance(type_, inspect.UnionType):
        return " | ".join([*map(_param_annotation, choices(type_)[0]), *(["None"] if choices(type_)[1] else [])])
    return _scalar(type_)


def _optional_param(field: inspect.Field) -> str:
    annotation, default = _param_annotation(field.type), default_of(field)
    if default is msgspec.UNSET or default is None:
        return f"{annotation.removesuffix(' | None')} | None = None"
    if isinstance(default, list):
        return f"{annotation} = ()"
    return f"{annotation} = {default!r}".replace("''", '""')


def _docstring(text: str, indent: int) -> str:
    """The docstring as source, wrapped to the project's width."""
    blank = " " * indent
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    wrapped = [textwrap.fill(part, WIDTH - indent - 6, break_on_hyphens=False, break_long_words=False) for part in paragraphs]
    body = "\n\n".join(wrapped)
    lines = [blank + line if line else "" for line in body.split("\n")]
    quoted = blank + '"""' + "\n".join(lines).strip()
    return quoted + ('"""' if len(lines) == 1 else f'\n{blank}"""')
