# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""shape.py FILE: whether the JSON documents on standard input, one a line or a single
one, have the shape that FILE tells.

A shape is JSON: an object has exactly these keys, or, if the one key is "*", some whose
values are all as that tells; with the key "or null" it may be null instead; an array holds
any number of what its one element tells; a string names types: "int", "number", "string",
"bool", "null", joined by "|". With --not-empty no array may be empty.
"""
import json
import sys

TYPES = {
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "bool": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}


def differences(value, shape, where, not_empty):
    if isinstance(shape, str):
        if not any(TYPES[name](value) for name in shape.split("|")):
            yield f"{where}: {json.dumps(value)[:60]} is no {shape}"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{where}: no array"
            return
        if not_empty and not value:
            yield f"{where}: empty"
        for i, element in enumerate(value):
            yield from differences(element, shape[0], f"{where}[{i}]", not_empty)
    elif value is not None or "or null" not in shape:
        shape = {key: what for key, what in shape.items() if key != "or null"}
        if not isinstance(value, dict):
            yield f"{where}: no object"
            return
        if shape.keys() == {"*"}:
            if not value:
                yield f"{where}: no key"
            for key in value:
                yield from differences(value[key], shape["*"], f"{where}.{key}", not_empty)
            return
        for key in shape.keys() - value.keys():
            yield f"{where}: no key {key}"
        for key in value.keys() - shape.keys():
            yield f"{where}: key {key} is not in the shape"
        for key in shape.keys() & value.keys():
            yield from differences(value[key], shape[key], f"{where}.{key}", not_empty)


def documents(text):
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def main():
    arguments = sys.argv[1:]
    not_empty = "--not-empty" in arguments
    with open([a for a in arguments if a != "--not-empty"][0], encoding="utf-8") as file:
        shape = json.load(file)
    found = []
    try:
        for document in documents(sys.stdin.read()):
            found += differences(document, shape, "$", not_empty)
    except json.JSONDecodeError as error:
        found.append(f"no JSON: {error}")
    for line in found:
        print(f"# {line}")
    sys.exit(1 if found else 0)


main()
