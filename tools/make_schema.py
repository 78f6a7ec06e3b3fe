#!/usr/bin/env python3
"""Writes ops/onnx_schema.def from a table of the ONNX operator schemas.

    tools/make_schema.py TABLE.tsv > ops/onnx_schema.def

The table has one line per operator version: domain, op, since, deprecated, inputs_min_max, outputs_min_max,
attributes, inputs, outputs, types.  "-" stands for "nothing to say"; an arity of "-" is the number of formal
parameters.  A parameter is NAME[?|*][~]:TYPE[/d] (optional, variadic, heterogeneous, differentiable); an attribute is
NAME:TYPE[!][=DEFAULT] (required, default); a type constraint is VAR=TYPES.  Run by hand when a new ONNX is released:
the result is checked in and the build does not need this script.
"""
import ast
import re
import sys

# Element types in the order of TensorProto.DataType; the position is the number.
ELEMENTS = ("undefined float uint8 int8 uint16 int16 int32 int64 string bool float16 double uint32 uint64 complex64 "
            "complex128 bfloat16 float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz uint4 int4 float4e2m1 "
            "float8e8m0 uint2 int2 float6e2m3 float6e3m2").split()
SHORT = ("UNDEFINED F32 U8 I8 U16 I16 I32 I64 STR BOOL F16 F64 U32 U64 C64 C128 BF16 F8E4M3 F8E4M3Z F8E5M2 F8E5M2Z U4 "
         "I4 F4E2M1 F8E8M0 U2 I2 F6E2M3 F6E3M2").split()
# Named unions, the largest first: a mask is written with as few words as possible.
GROUPS = [("INTS", "I8 I16 I32 I64"), ("UINTS", "U8 U16 U32 U64"), ("FLOATS", "F16 F32 F64"),
          ("F8S", "F8E4M3 F8E4M3Z F8E5M2 F8E5M2Z"), ("COMPLEX", "C64 C128"), ("NIBBLES", "U4 I4"), ("CRUMBS", "U2 I2")]
ATTRIBUTES = {"float": "FLOAT", "int": "INT", "string": "STRING", "tensor": "TENSOR", "graph": "GRAPH",
              "floats": "FLOATS", "ints": "INTS", "strings": "STRINGS", "tensors": "TENSORS", "graphs": "GRAPHS",
              "sparse_tensor": "SPARSE_TENSOR", "sparse_tensors": "SPARSE_TENSORS", "type_proto": "TYPE_PROTO",
              "type_protos": "TYPE_PROTOS"}
KINDS = [("tensor", r"(\w+)"), ("tensor", r"tensor\((\w+)\)"), ("seq", r"seq\(tensor\((\w+)\)\)"),
         ("opt", r"optional\(tensor\((\w+)\)\)"), ("opt_seq", r"optional\(seq\(tensor\((\w+)\)\)\)"),
         ("map", r"map\(\w+, (\w+)\)?"), ("seq_map", r"seq\(map\(\w+, (\w+)\)\)")]


def quote(text):
    assert '"' not in text and "\\" not in text, text
    return '"' + text + '"'


def mask_text(numbers):
    left, words = {SHORT[n] for n in numbers}, []
    for name, members in GROUPS:
        if set(members.split()) <= left:
            left -= set(members.split())
            words.append(name)
    return " | ".join(words + [w for w in SHORT if w in left]) or "0"


def split_types(text):
    """"float int64", "tensor(float), seq(tensor(int8))" and "map(int64, string map(int64, float" are all in use."""
    found = re.findall(r"seq\(map\([^)]*\)\)|map\(\w+, \w+\)?|optional\(seq\(tensor\(\w+\)\)\)|optional\(tensor\(\w+\)\)"
                       r"|seq\(tensor\(\w+\)\)|tensor\(\w+\)|\w+", text)
    assert re.sub(r"[ ,]", "", "".join(found)) == re.sub(r"[ ,]", "", text), text
    return found


def constraint(var, types):
    masks = {}
    for entry in types:
        for kind, pattern in KINDS:
            match = re.fullmatch(pattern, entry)
            if match:
                masks.setdefault(kind, set()).add(ELEMENTS.index(match[1]))
                break
        else:
            raise SystemExit("no such type: " + entry)
    fields = ", ".join(".%s = %s" % (kind, mask_text(masks[kind])) for kind in
                       ("tensor", "seq", "opt", "opt_seq", "map", "seq_map") if kind in masks)
    return "T(%s, %s)" % (quote(var), fields)


def attribute(text):
    name, kind, required, default = re.fullmatch(r"(\w+):(\w+)(!?)(?:=(.*))?", text).groups()
    head = "%s, %s" % (quote(name), ATTRIBUTES[kind])
    if required:
        return "REQUIRED(%s)" % head
    if default is None:
        return "OPTIONAL(%s)" % head
    if kind in ("ints", "floats", "strings"):
        default = ",".join(ast.literal_eval(default))
    number = {"int": ".i = %s" % default, "float": ".f = %sf" % default}.get(kind, ".i = 0")
    return "DEFAULT(%s, %s, %s)" % (head, quote(default), number)


def parameter(text, variables):
    name, marks, kind, diff = re.fullmatch(r"(\w+)((?:\.\.\.)?[?*~]*):(.+?)(/d)?", text).groups()
    flags = [word for mark, word in (("?", "OPT"), ("*", "VAR"), ("~", "HETERO")) if mark in marks]
    flags += ["DIFF"] if diff else []
    if kind not in variables:                     # a concrete type is a variable of one type, named by its text
        variables[kind] = [kind]
    return "P(%s, %d, %s)" % (quote(name), list(variables).index(kind), " | ".join(flags) or "0")


def arity(text, n):
    low, high = (str(n), str(n)) if text == "-" else text.split("-")
    return low + ", " + ("ONNX_MANY" if high == "*" else high)


def items(text, separator):
    return [] if text == "-" else text.split(separator)


def listed(word, rows):
    return "%s(%s)" % (word, ", ".join(rows)) if rows else "NO_" + word


def row(line):
    domain, op, since, deprecated, n_in, n_out, attributes, inputs, outputs, types = line
    variables = {}
    for entry in items(types, "; "):
        var, text = entry.split("=", 1)
        variables[var] = split_types(text)
    ins, outs = items(inputs, ", "), items(outputs, ", ")
    ins, outs = [parameter(p, variables) for p in ins], [parameter(p, variables) for p in outs]
    return "ROW(%s, %s, %s, %d, %s, %s,\n    %s,\n    %s, %s,\n    %s)" % (
        quote(domain), quote(op), since, deprecated == "deprecated", arity(n_in, len(ins)), arity(n_out, len(outs)),
        listed("ATTRS", [attribute(a) for a in items(attributes, "; ")]), listed("INPUTS", ins), listed("OUTPUTS", outs),
        listed("TYPES", [constraint(v, t) for v, t in variables.items()]))


def main():
    with open(sys.argv[1], encoding="utf-8") as table:
        lines = [line.rstrip("\n").split("\t") for line in table][1:]
    lines.sort(key=lambda line: (line[0], line[1], int(line[2])))
    print("/* The schema of every ONNX operator version; written by tools/make_schema.py, sorted for binary search. */")
    print("/* clang-format off */")
    for line in lines:
        print(row(line))
    print("/* clang-format on */")


main()
