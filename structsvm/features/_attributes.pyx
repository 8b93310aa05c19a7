"""Tokens of named features, for :mod:`structsvm.features.attributes`."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next, PyDict_SetItem
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.set cimport PySet_Add
from cpython.unicode cimport PyUnicode_CheckExact, PyUnicode_Concat, PyUnicode_FindChar, PyUnicode_Substring
from libc.math cimport isfinite
from libc.stdint cimport INT32_MAX, int32_t, int64_t
from libc.stdlib cimport free

cimport cython

import numpy as np

from structsvm.features._strings cimport copied, hash_bytes, reserve, utf8
from structsvm.features._tokens cimport TokenBuffer, not_finite

cdef extern from "Python.h":
    double PyLong_AsDouble(object x) except? -1.0
    long PyLong_AsLong(PyObject *x) except? -1
    bint PyLong_Check(object x)

cdef enum:
    MAX_DEPTH = 64              # nesting of feature dicts
    MANY_KEYS = 256             # names of nested dicts that are remembered, and keys of each


@cython.final
cdef class AttributeBuffer(TokenBuffer):
    """Tokens given as dicts of features or collections of attribute strings.

    Parameters
    ----------
    names : dict of str to int
        The vocabulary, 0 .. len(names) - 1; grows with ``grow=True``.
    pairs : dict of str to dict of str to int
        Cache: the id of "key:value", so that the name is built once only.
    nested : dict of str to dict of str to str
        Cache: "prefix:key" of nested dicts, while they are few.
    grow : bool
    hash_bits : int
        0: vocabulary. k: 2**k buckets.
    """
    cdef dict names, pairs, nested, places
    cdef readonly set numbers       # features that have had a number other than 1
    cdef bint grow
    cdef int hash_bits
    cdef int64_t *counts
    cdef int64_t counts_capacity
    cdef int64_t token              # within the sequence, for messages

    def __init__(self, dict names, dict pairs, dict nested, bint grow, int hash_bits=0):
        cdef Py_ssize_t n, n_counted = len(names) if grow else 0
        if not 0 <= hash_bits <= 30:
            raise ValueError("hash_bits must be between 1 and 30")
        if reserve(<void **>&self.counts, &self.counts_capacity, n_counted, sizeof(int64_t)) < 0:
            raise MemoryError
        for n in range(n_counted):
            self.counts[n] = 0
        self.names = names
        self.pairs = pairs
        self.nested = nested
        self.places = {}
        self.numbers = set()
        self.grow = grow
        self.hash_bits = hash_bits

    def __dealloc__(self):
        free(self.counts)

    def counted(self):
        """Occurrences of each feature in this buffer while growing, int64."""
        return copied(self.counts, len(self.names), np.int64, sizeof(int64_t))

    cdef where(self):
        return f"sequence {self.n_sequences}, token {self.token}"

    cdef int64_t find(self, str name) except -2:
        """The id of a feature; -1 unknown. Names new to a growing vocabulary are added."""
        cdef PyObject *hit
        cdef int64_t n
        cdef Py_ssize_t size
        cdef bytes coded
        if self.hash_bits:
            coded = utf8(name)
            size = PyBytes_GET_SIZE(coded)
            return <int64_t>(hash_bytes(PyBytes_AS_STRING(coded), size)
                             >> (64 - self.hash_bits))
        hit = PyDict_GetItemWithError(self.names, name)
        if hit != NULL:
            return PyLong_AsLong(hit)
        if not self.grow:
            return -1
        n = len(self.names)
        if n >= INT32_MAX - 1:
            raise OverflowError("more than 2**31 - 1 features")
        if reserve(<void **>&self.counts, &self.counts_capacity, n + 1, sizeof(int64_t)) < 0:
            raise MemoryError
        self.counts[n] = 0
        self.names[name] = n
        return n

    cdef inline int record(self, int64_t id_, float value) except -1:
        if id_ >= 0:
            if self.grow and not self.hash_bits:
                self.counts[id_] += 1
            if self.push(<int32_t>id_, value) < 0:
                raise MemoryError
        return 0

    cdef int add_name(self, object name) except -1:
        """An attribute string, without a prefix."""
        cdef PyObject *hit
        if PyUnicode_CheckExact(name) and not self.hash_bits:
            hit = PyDict_GetItemWithError(self.names, name)
            if hit != NULL:
                return self.record(PyLong_AsLong(hit), 1.0)
        return self.record(self.find(self.text(name)), 1.0)

    cdef int add_pair(self, object key, object value) except -1:
        """The feature "key:value" of two exact strings."""
        cdef PyObject *inner
        cdef PyObject *hit
        cdef int64_t id_
        cdef dict values
        if self.hash_bits:
            return self.record(self.find(self.join(key, value)), 1.0)
        inner = PyDict_GetItemWithError(self.pairs, key)
        if inner != NULL:
            hit = PyDict_GetItemWithError(<object>inner, value)
            if hit != NULL:
                return self.record(PyLong_AsLong(hit), 1.0)
        id_ = self.find(self.join(key, value))
        if id_ >= 0:
            values = self.pairs.setdefault(key, {})
            PyDict_SetItem(values, value, id_)
            self.record(id_, 1.0)
        return 0

    cdef object below(self, object prefix, object key):
        """The name "prefix:key" of two exact strings."""
        cdef PyObject *keys = PyDict_GetItemWithError(self.nested, prefix)
        cdef PyObject *hit
        if keys == NULL:
            if len(self.nested) >= MANY_KEYS:
                return self.join(prefix, key)
            self.nested[prefix] = {}
            keys = PyDict_GetItemWithError(self.nested, prefix)
        hit = PyDict_GetItemWithError(<object>keys, key)
        if hit != NULL:
            return <object>hit
        name = self.join(prefix, key)
        if len(<dict>keys) < MANY_KEYS:
            PyDict_SetItem(<object>keys, key, name)
        return name

    cdef str join(self, object prefix, object rest):
        return PyUnicode_Concat(PyUnicode_Concat(prefix, ":"), rest)

    cdef str text(self, object name):
        """A name as an exact str. bytes are UTF-8, as in python-crfsuite."""
        if PyUnicode_CheckExact(name):
            return name
        if isinstance(name, str):
            return str.__str__(name)
        if isinstance(name, bytes):
            try:
                return (<bytes>name).decode("utf-8")
            except UnicodeDecodeError:
                raise ValueError(f"{self.where()}: feature {name!r} is not UTF-8") from None
        hint = "; rows of numbers are a 2-D array: numpy.array(sequence)" if isinstance(name, float) else ""
        raise TypeError(f"{self.where()}: names of features must be strings, got "
                        f"{name!r} of type {type(name).__name__}{hint}")

    cdef float number(self, object name, object value) except? -1.0:
        """A numeric value as a finite float32."""
        cdef double x
        cdef float narrow
        try:
            if PyFloat_CheckExact(value):
                x = PyFloat_AS_DOUBLE(value)
            elif PyLong_Check(value):
                x = PyLong_AsDouble(value)
            elif getattr(value, "shape", ()) != ():
                raise TypeError
            else:
                x = float(value)
        except TypeError:
            raise TypeError(
                f"{self.where()}: feature {name!r} has a value of type {type(value).__name__}; "
                "wanted a string, a number, a dict of them, a list or array of either, or a set of strings") from None
        except OverflowError:
            raise not_finite(self.n_sequences, self.token, name, "too large") from None
        narrow = <float>x
        if not isfinite(narrow):
            raise not_finite(self.n_sequences, self.token, name, x)
        return narrow

    cdef int add_item(self, object prefix, object key, object value, int depth) except -1:
        """One key and value of a dict; prefix None at the top."""
        cdef float number
        cdef int64_t id_
        if not PyUnicode_CheckExact(key):
            key = self.text(key)
        if value is False:
            return 0
        if prefix is not None:
            key = self.below(prefix, key)
        if PyUnicode_CheckExact(value):
            return self.add_pair(key, value)
        if PyFloat_CheckExact(value) or PyLong_Check(value):
            number = self.number(key, value)
        elif isinstance(value, (str, bytes)):
            return self.add_pair(key, self.text(value))
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            return self.add_nested(key, value, depth + 1)
        elif getattr(value, "shape", ()) != () and hasattr(value, "tolist"):
            return self.add_nested(key, value.tolist(), depth + 1)
        else:
            number = self.number(key, value)
        if number != 0.0:
            id_ = self.find(key)
            self.record(id_, number)
            if number != 1.0 and id_ >= 0 and (self.grow or self.hash_bits):
                self.numbers.add(id_)
        return 0

    cdef int add_nested(self, object prefix, object value, int depth) except -1:
        if depth > MAX_DEPTH:
            raise ValueError(f"{self.where()}: feature dicts are nested more than {MAX_DEPTH} deep")
        if isinstance(value, dict):
            for key, inner in (<dict>value).items():
                self.add_item(prefix, key, inner, depth)
        elif isinstance(value, (list, tuple)):
            for place, inner in enumerate(value):
                if isinstance(inner, (str, bytes)):
                    self.add_pair(prefix, self.text(inner))
                else:
                    self.add_item(None, self.name_of_place(prefix, place), inner, depth)
        else:
            for key in self.in_order(value):
                self.add_pair(prefix, self.text(key))
        return 0

    cdef str name_of_place(self, str key, Py_ssize_t place):
        """The name of a number in a list: "key[place]"."""
        cdef list names = self.places.setdefault(key, [])
        while len(names) <= place:
            names.append(f"{key}[{len(names)}]")
        return names[place]

    cdef object in_order(self, object names):
        """A collection of names; sets sorted, so that feature indices do not depend on the hash seed."""
        if isinstance(names, (set, frozenset)):
            return sorted([self.text(name) for name in names])
        return names

    cdef int add_token(self, object token) except -1:
        cdef Py_ssize_t k = 0
        cdef PyObject *key
        cdef PyObject *value
        if isinstance(token, dict):
            if type(token) is dict:
                while PyDict_Next(token, &k, &key, &value):
                    self.add_item(None, <object>key, <object>value, 0)
            else:
                for name, inner in token.items():
                    self.add_item(None, name, inner, 0)
        elif type(token) is list:
            while k < PyList_GET_SIZE(token):
                self.add_name(<object>PyList_GET_ITEM(token, k))
                k += 1
        elif type(token) is tuple:
            for k in range(PyTuple_GET_SIZE(token)):
                self.add_name(<object>PyTuple_GET_ITEM(token, k))
        elif isinstance(token, (list, tuple, set, frozenset)):
            for name in self.in_order(token):
                self.add_name(name)
        elif hasattr(token, "items") and hasattr(token, "keys"):
            for name, inner in token.items():
                self.add_item(None, name, inner, 0)
        else:
            raise TypeError(
                f"{self.where()}: a token must be a dict of features or a list of attribute "
                f"strings, got {token!r:.40} of type {type(token).__name__}")
        return 0

    def add(self, sequence):
        """Add one sequence of tokens."""
        if isinstance(sequence, (str, bytes, dict)) or not hasattr(sequence, "__iter__"):
            hint = ": text.split() makes one of its words" if isinstance(sequence, str) else ""
            raise TypeError(f"sequence {self.n_sequences} must be a list of tokens, got "
                            f"{type(sequence).__name__}{hint}")
        self.token = 0
        for token in sequence:
            self.add_token(token)
            if self.end_token() < 0:
                raise MemoryError
            self.token += 1
            if self.token & 4095 == 0:
                PyErr_CheckSignals()
        self.end_sequence()


# ---- columns of tokens --------------------------------------------------------------------------


def count_columns(token, dict counts, dict names):
    """Count the columns of a token: keys of a dict, those of strings with a colon; or attributes up to ':' or '='.

    Parameters
    ----------
    token : mapping, or list, tuple or set of str
        Any other token has no columns.
    counts : dict of str to int
        Tokens with each column; 1 is added for those of this token.
    names : dict
        Cache: keys of strings, with their colons.
    """
    cdef set found
    if hasattr(token, "items"):
        for key, value in token.items():
            if isinstance(value, str):
                name = names.get(key)
                if name is None:
                    name = names[key] = f"{key}:"
            else:
                name = key if PyUnicode_CheckExact(key) else str(key)
            add_one(counts, name)
    elif isinstance(token, (list, tuple, set, frozenset)):
        found = set()
        for name in token:
            if isinstance(name, str):
                name = beginning(name)
                if name is not None:
                    PySet_Add(found, name)
        for name in sorted(found):
            add_one(counts, name)


def are_usual(list sequences, tuple texts, tuple others, known, Py_ssize_t most):
    """Whether tokens are dicts that all have the usual columns, and the first has no column of texts but known ones.

    Parameters
    ----------
    sequences : list
    texts, others : tuples of str
        Keys that are usual: of texts, without their colons, and of all else.
    known : set of str
        Keys of the texts that training had.
    most : int
        Tokens from which on nothing is looked at.

    Returns
    -------
    bool
        False also for tokens that this does not understand.
    """
    cdef Py_ssize_t n = 0
    cdef PyObject *value
    for sequence in sequences:
        if type(sequence) is not list:
            return False
        for token in <list>sequence:
            if type(token) is not dict or n == most or not has_plain_keys(token):
                return False
            for key in texts:
                value = PyDict_GetItemWithError(token, key)
                if value == NULL or not isinstance(<object>value, str):
                    return False
            for key in others:
                value = PyDict_GetItemWithError(token, key)
                if value == NULL or isinstance(<object>value, str):
                    return False
            if n == 0 and has_strange(token, known):
                return False
            n += 1
    return True


cdef bint has_plain_keys(dict token) noexcept:
    """Whether all keys are exact strings, which no lookup asks to compare themselves."""
    cdef Py_ssize_t k = 0
    cdef PyObject *key
    while PyDict_Next(token, &k, &key, NULL):
        if not PyUnicode_CheckExact(<object>key):
            return False
    return True


cdef bint has_strange(dict token, known) except -1:
    """Whether a token has a column of texts that is not known, or a name that ends as one; its keys are strings."""
    for key, value in token.items():
        if isinstance(value, str):
            if key not in known:
                return True
        elif (<str>key).endswith((":", "=")):
            return True
    return False


cdef int add_one(dict counts, name) except -1:
    cdef PyObject *count = PyDict_GetItemWithError(counts, name)
    PyDict_SetItem(counts, name, 1 if count == NULL else <object>count + 1)
    return 0


cdef object beginning(name):
    """An attribute up to its first ':' or '='; None if it has neither, or nothing before it."""
    cdef Py_ssize_t size = len(name), colon = PyUnicode_FindChar(name, u":", 0, size, 1)
    cdef Py_ssize_t sign = PyUnicode_FindChar(name, u"=", 0, size if colon < 0 else colon, 1)
    cdef Py_ssize_t end = colon if sign < 0 else sign
    return None if end < 1 else PyUnicode_Substring(name, 0, end + 1)
