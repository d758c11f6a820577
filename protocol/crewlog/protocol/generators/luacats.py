"""LuaCATS annotations for the Neovim plugin: `editors/neovim/lua/crewlog/types.lua`."""

from __future__ import annotations

from msgspec import inspect

from crewlog.protocol import errors, params
from crewlog.protocol.generators.shapes import HEADER, NAMES, all_structs, bare, choices, doc_of, record_of, result_type
from crewlog.protocol.methods import METHODS, NOTIFICATIONS


def lua_module() -> str:
    methods = "\n".join(f'---| "{method.name}" # {method.doc}' for method in METHODS.values())
    notifications = "\n".join(f'---| "{item.name}" # {item.doc}' for item in NOTIFICATIONS.values())
    kinds = "\n".join(f'---| "{kind}"' for kind in [*errors.PROTOCOL_ERRORS.values(), *errors.BY_KIND])
    return "\n".join(
        [
            f"-- {HEADER}",
            "---@meta crewlog.types\n",
            *(_class(struct) for struct in all_structs()),
            f"---@alias crewlog.Method\n{methods}\n",
            f"---@alias crewlog.Notification\n{notifications}\n",
            f"---@alias crewlog.ErrorKind\n{kinds}\n",
            "---@class crewlog.Error",
            "---@field code integer",
            "---@field message string",
            "---@field data { kind: crewlog.ErrorKind, [string]: any }\n",
            "--- The result of each method.",
            "---@class crewlog.Results",
            *(f'---@field ["{name}"] {_type(result_type(name))}' for name in METHODS),
            "\nreturn {}\n",
        ]
    )


def _class(struct: inspect.StructType) -> str:
    lines = [f"--- {line}" for line in doc_of(struct.cls).split("\n") if line]
    lines.append(f"---@class {_name(struct.cls)}")
    lines += [f"---@field {field.encode_name}{'' if field.required else '?'} {_type(field.type)}" for field in struct.fields]
    return "\n".join([*lines, ""])


def _name(cls: type) -> str:
    space = "crewlog.params" if cls.__module__ == params.__name__ else "crewlog"
    return f"{space}.{NAMES.get(cls.__name__, cls.__name__.removesuffix('Params'))}"


def _type(type_: inspect.Type) -> str:
    type_ = bare(type_)
    record = record_of(type_)
    if record is not None:
        return f"crewlog.{NAMES[record]}"
    if isinstance(type_, inspect.StructType):
        return _name(type_.cls)
    if isinstance(type_, inspect.ListType):
        item = _type(type_.item_type)
        return f"({item})[]" if "|" in item else f"{item}[]"
    if isinstance(type_, inspect.DictType):
        return f"table<string, {_type(type_.value_type)}>"
    if isinstance(type_, inspect.LiteralType):
        return "|".join(f'"{value}"' for value in type_.values)
    if isinstance(type_, inspect.UnionType):
        return "|".join([*map(_type, choices(type_)[0]), *(["nil"] if choices(type_)[1] else [])])
    names: dict[type[inspect.Type], str] = {
        inspect.StrType: "string",
        inspect.IntType: "integer",
        inspect.FloatType: "number",
        inspect.BoolType: "boolean",
        inspect.NoneType: "nil",
        inspect.RawType: "any",
    }
    return names[type(type_)]
