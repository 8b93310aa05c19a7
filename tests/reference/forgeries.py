"""Forgeries that no record allows in a file: fields and arrays that are missing, wrong or out of bounds."""

import copy
import math
import sys

import numpy as np

from structsvm.stored_values import Array, Count, Flag, Names, Number, OneOf, Record, Text

WRONG = {
    Count: (True, "3", 1e30, 10**400, []),
    Number: (True, "1", 10**400, [1.0]),
    Flag: (1, "true"),
    Text: (1, []),
    OneOf: ("no such", 10**30, []),
    Names: ("ab", [1], ["a", "a"], {}),
}


def wrong_values(field):
    """Values that a field cannot have."""
    yield from WRONG.get(type(field), ())
    if type(field) in WRONG and not field.null:
        yield None
    if type(field) is Count:
        yield from (field.low - 1, field.high + 1)
    if type(field) is Number and field.low > -sys.float_info.max:
        yield math.nextafter(field.low, -math.inf)


def forged_headers(record, header):
    """Yield ``(name, header)``: the header of a file with one field missing or wrong."""
    for path, field in fields_of(record):
        *outer, name = path
        for value in ("missing", *wrong_values(field)):
            forged = copy.deepcopy(header)
            inner = forged
            for key in outer:
                inner = inner.get(key) if inner is not None else None
            if inner is None or name not in inner:  # a part that the file does not have
                break
            if value != "missing":
                inner[name] = value
            elif field.needed:
                del inner[name]
            else:
                continue
            yield ".".join(path), forged


def fields_of(record, path=()):
    """Yield ``(path, field)`` of the header's fields, those of records within after their own."""
    for name, field in record.fields.items():
        if isinstance(field, Array) or (isinstance(field, Record) and not field.has_header):
            continue
        if not isinstance(field, Record) or field.written:
            yield (*path, name), field
        if isinstance(field, Record):
            yield from fields_of(field, (*path, name))


def arrays_of(record, prefix=""):
    """The arrays of a record and of those within, by their names in a file."""
    table = {prefix + name: array for name, array in record.table.items()}
    for name, field in record.fields.items():
        if isinstance(field, Record):
            table |= arrays_of(field, f"{prefix}{name}.")
    return table


def forgeries(array, wanted):
    """Yield arrays that a table does not allow in an array's place; None: no array at all."""
    yield array[None, None]
    yield array.astype("<c16")
    if wanted.needed:
        yield None
    if array.dtype.kind == "f" and wanted.finite and array.size:
        yield np.full_like(array, np.nan)
        yield np.full_like(array, -np.inf)
    low, high = wanted.within
    if low is not None and array.size:
        if array.dtype.kind != "u":
            yield np.full_like(array, np.iinfo(array.dtype).min if array.dtype.kind == "i" else -1)
        if high is not None and array.dtype.kind in "iu":
            yield np.full_like(array, np.iinfo(array.dtype).max)
    if wanted.some:
        yield np.zeros_like(array)
    if wanted.once and len(array) > 1:
        yield np.full_like(array, array[0])
    if wanted.rises_to is not None and array[-1] > 0:
        if len(array) > 2:  # two numbers rise to another end
            yield np.where(np.arange(len(array)) > 0, array[::-1], 0).astype(array.dtype)
        yield array + 1
    if array.shape and any(isinstance(size, int) for size in wanted.shape):
        yield np.concatenate([array, array], axis=[isinstance(size, int) for size in wanted.shape].index(True))
