"""The types of the VS Code extension: `editors/vscode/src/protocol.ts`."""

from __future__ import annotations

import json

from msgspec import inspect

from crewlog.protocol import errors, params
from crewlog.protocol.generators.shapes import (
    HEADER,
    NAMES,
    all_structs,
    bare,
    choices,
    doc_of,
    params_struct,
    record_of,
    result_type,
    struct_of,
)
from crewlog.protocol.methods import METHODS, NOTIFICATIONS, PROTOCOL_VERSION


def typescript_module() -> str:
    text = [
        f"// {HEADER}\n",
        f"export const protocolVersion = {PROTOCOL_VERSION};\n",
        "/** Any JSON value. */\nexport type Json = null | boolean | number | string | Json[] | { [key: string]: Json };\n",
        *(_interface(struct) for struct in all_structs()),
        "/** Every request: its params and its result. */\nexport interface Methods {",
    ]
    for method in METHODS.values():
        result = _type(result_type(method.name))
        text.append(f"  /** {method.doc} */")
        text.append(f'  "{method.name}": {{ params: {_name(params_struct(method.name).cls)}; result: {result} }};')
    text += ["}\n", "/** Every notification to the client. */", "export interface Notifications {"]
    text += [f'  /** {item.doc} */\n  "{item.name}": {item.params.__name__};' for item in NOTIFICATIONS.values()]
    text += ["}\n", _errors()]
    return "\n".join(text)


def _interface(struct: inspect.StructType) -> str:
    doc = doc_of(struct.cls)
    lines = [_comment(doc)] if doc else []
    is_stored = struct.cls.__name__ in NAMES
    if not struct.fields:
        return "\n".join([*lines, f"export type {_name(struct.cls)} = Record<string, never>;\n"])
    lines.append(f"export interface {_name(struct.cls)} {{")
    lines += [f"  {_key(field.encode_name)}{'' if field.required else '?'}: {_type(field.type)};" for field in struct.fields]
    if is_stored:
        lines.append("  /** What a newer version may have added. */\n  [field: string]: unknown;")
    return "\n".join([*lines, "}\n"])


def _name(cls: type) -> str:
    name = cls.__name__
    is_params = cls.__module__ == params.__name__ and issubclass(cls, params.Params) and cls in {m.params for m in METHODS.values()}
    return f"{name.removesuffix('Params')}Params" if is_params else NAMES.get(name, name)


def _key(name: str) -> str:
    return name if name.isidentifier() else json.dumps(name)


def _type(type_: inspect.Type) -> str:
    type_ = bare(type_)
    record = record_of(type_)
    if record is not None:
        return NAMES[record]
    if isinstance(type_, inspect.StructType):
        return _name(type_.cls)
    if isinstance(type_, inspect.ListType):
        item = _type(type_.item_type)
        return f"({item})[]" if "|" in item else f"{item}[]"
    if isinstance(type_, inspect.DictType):
        return f"{{ [key: string]: {_type(type_.value_type)} }}"
    if isinstance(type_, inspect.LiteralType):
        return " | ".join(json.dumps(value) for value in type_.values)
    if isinstance(type_, inspect.UnionType):
        return " | ".join([*map(_type, choices(type_)[0]), *(["null"] if choices(type_)[1] else [])])
    names: dict[type[inspect.Type], str] = {
        inspect.StrType: "string",
        inspect.IntType: "number",
        inspect.FloatType: "number",
        inspect.BoolType: "boolean",
        inspect.NoneType: "null",
        inspect.RawType: "Json",
    }
    return names[type(type_)]


def _comment(text: str) -> str:
    lines = text.split("\n")
    return f"/** {text} */" if len(lines) == 1 else "\n".join(["/**", *(f" * {line}".rstrip() for line in lines), " */"])


def _errors() -> str:
    codes = {kind: code for code, kind in errors.PROTOCOL_ERRORS.items()} | {row.kind: row.code for row in errors.TABLE}
    lines = ["/** The code of each kind of error; branch on `error.data.kind`. */", "export const ErrorCodes = {"]
    lines += [f"  {kind}: {code}," for kind, code in codes.items()]
    lines += ["} as const;\n", "export type ErrorKind = keyof typeof ErrorCodes;\n", "/** What each kind of error carries. */"]
    lines += ["export interface ErrorData {", '  invalidParams: { kind: "invalidParams"; field: string };']
    for row in errors.TABLE:
        facts = "".join(f"; {_key(f.encode_name)}{'' if f.required else '?'}: {_type(f.type)}" for f in struct_of(row.facts).fields)
        lines.append(f'  /** {row.doc} */\n  {row.kind}: {{ kind: "{row.kind}"{facts} }};')
    lines += ["}\n", "export type KnownErrorData = ErrorData[keyof ErrorData];\n"]
    return "\n".join(lines)
