"""Tokens of named features, for :mod:`structsvm.features.attributes`."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next, PyDict_SetItem
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.set cimport PySet_Add
from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_CheckExact, PyUnicode_Concat, PyUnicode_FindChar
from cpython.unicode cimport PyUnicode_GET_LENGTH, PyUnicode_Substring, PyUnicode_Tailmatch
from libc.math cimport isfinite
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free

cimport cython

import sys

import numpy as np

from structsvm.features._strings cimport Asked, NameTable, SPELLED, ascii_of, copied, hash_bytes, is_compact_ascii
from structsvm.features._strings cimport reserve, spell, utf8
from structsvm.features._tokens cimport TokenBuffer, not_finite

cdef extern from "Python.h":
    double PyLong_AsDouble(object x) except? -1.0
    long PyLong_AsLong(PyObject *x) except? -1
    bint PyLong_Check(object x)
    PyObject *item "PyList_GET_ITEM"(object x, Py_ssize_t n)

cdef enum:
    MAX_DEPTH = 64              # nesting of feature dicts
    MANY_BEGINNINGS = 4096      # beginnings of names that are remembered
    TOGETHER = 64               # names that are looked up together
    ENOUGH = 1 << 13            # names that are gathered before they are looked up
    MANY = 1 << 10              # names whose look-up is worth the release of the GIL


cdef struct Head:
    const char *text    # the beginning of a name, in UTF-8
    int64_t size
    uint64_t spelled    # its hash


cdef struct Gathered:
    const Head *head    # a name in two parts
    const char *rest
    int64_t size
    PyObject *owner     # a reference to the object with the letters of `rest`
    float value


@cython.final
cdef class Beginning:
    """Beginning of names of features, "key:", or nothing; and the longer ones that are known.

    Tokens have their keys mostly in one order, and the same objects: a key is first looked for at its place.
    """
    cdef str text
    cdef bytes coded            # in UTF-8
    cdef Head head
    cdef str key                # the last key, without the colon
    cdef Py_ssize_t place       # among those of the same level; -1: it is not remembered
    cdef list longer            # in the order of arrival
    cdef dict by_key
    cdef dict ids               # the feature of each rest of a name, where names are a dict

    def __cinit__(self, str text, str key=""):
        self.text, self.key = text, key
        self.coded = utf8(text)
        self.head.text, self.head.size = PyBytes_AS_STRING(self.coded), PyBytes_GET_SIZE(self.coded)
        self.head.spelled = spell(SPELLED, self.head.text, self.head.size)
        self.place, self.longer, self.by_key, self.ids = -1, [], {}, {}


@cython.final
cdef class KnownNames:
    """Names of features that do not change, and the beginnings that were met: a table for `AttributeBuffer`.

    Parameters
    ----------
    names : list of str
    """
    cdef NameTable table
    cdef Beginning top
    cdef int64_t n_beginnings

    def __init__(self, list names):
        self.table, self.top = NameTable(names), Beginning("")
        self.top.place = 0

    def __reduce__(self):
        raise TypeError("a table of names is made anew from its names")

    cdef KnownNames without_beginnings(self):
        """The same names, without the beginnings that were met."""
        cdef KnownNames own = KnownNames([])
        own.table = self.table
        return own

    @property
    def n_remembered(self):
        """Beginnings that are remembered."""
        return self.n_beginnings


cdef bint has_gil():
    """Whether one thread runs Python at a time."""
    return not hasattr(sys, "_is_gil_enabled") or sys._is_gil_enabled()


@cython.final
cdef class AttributeBuffer(TokenBuffer):
    """Tokens given as dicts of features or collections of attribute strings.

    Known names are gathered first, as places of their letters in the tokens' own strings, to which the buffer holds
    references. Some thousands are then looked up without the GIL, so that another thread gathers meanwhile.

    Parameters
    ----------
    names : dict of str to int, or KnownNames
        The vocabulary, 0 .. len(names) - 1; a dict grows with ``grow=True``.
    grow : bool
    hash_bits : int
        0: vocabulary. k: 2**k buckets.
    first : int
        The number of the first sequence, in messages.
    """
    cdef dict names                 # None: `known` has them
    cdef KnownNames known
    cdef NameTable table
    cdef Beginning top
    cdef dict places
    cdef readonly set numbers       # features that have had a number other than 1
    cdef bint grow
    cdef int hash_bits
    cdef int64_t first
    cdef int64_t *counts
    cdef int64_t counts_capacity
    cdef int64_t token              # within the sequence, for messages
    cdef Gathered *gathered
    cdef int64_t *ends              # ends of tokens, among what is gathered
    cdef int64_t gathered_capacity, ends_capacity
    cdef int64_t n_gathered, n_ends

    def __init__(self, names, bint grow=False, int hash_bits=0, int64_t first=0):
        cdef Py_ssize_t n, n_counted = len(names) if grow else 0
        if not 0 <= hash_bits <= 30:
            raise ValueError("hash_bits must be between 1 and 30")
        if reserve(<void **>&self.counts, &self.counts_capacity, n_counted, sizeof(int64_t)) < 0:
            raise MemoryError
        for n in range(n_counted):
            self.counts[n] = 0
        if isinstance(names, KnownNames):
            self.known = names
            if not has_gil():   # threads would write to shared beginnings at the same time
                self.known = self.known.without_beginnings()
            self.table, self.top = self.known.table, self.known.top
        else:
            self.names, self.known, self.top = names, KnownNames([]), Beginning("")
            self.top.ids = self.names
        self.places = {}
        self.numbers = set()
        self.grow = grow
        self.hash_bits = hash_bits
        self.first = first

    def __dealloc__(self):
        self.forget(0)
        free(self.gathered)
        free(self.ends)
        free(self.counts)

    def counted(self):
        """Occurrences of each feature in this buffer while growing, int64."""
        return copied(self.counts, len(self.names), np.int64, sizeof(int64_t))

    cdef where(self):
        return f"sequence {self.first + self.n_sequences}, token {self.token}"

    cdef int64_t find(self, Beginning at, object rest) except -2:
        """The id of a feature by the beginning and the rest of its name, an exact str; -1 unknown.

        Names new to a growing vocabulary are added.
        """
        cdef PyObject *hit
        cdef int64_t id_
        if self.hash_bits:
            return self.hashed(PyUnicode_Concat(at.text, rest))
        hit = PyDict_GetItemWithError(at.ids, rest)
        if hit != NULL:
            return PyLong_AsLong(hit)
        if at is self.top:
            return self.numbered(rest)
        id_ = self.numbered(PyUnicode_Concat(at.text, rest))
        if id_ >= 0:
            at.ids[rest] = id_
        return id_

    cdef int64_t hashed(self, str name) except -2:
        cdef bytes coded = utf8(name)
        return <int64_t>(hash_bytes(PyBytes_AS_STRING(coded), PyBytes_GET_SIZE(coded)) >> (64 - self.hash_bits))

    cdef int64_t numbered(self, str name) except -2:
        """The id of a name in the dict, to which it is added where that grows; -1 unknown."""
        cdef PyObject *hit = PyDict_GetItemWithError(self.names, name)
        cdef int64_t n
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

    cdef Beginning below(self, Beginning at, str key, Py_ssize_t *place):
        """The beginning "...key:"; `place` is where it is expected, and becomes the place behind it."""
        cdef Beginning found
        cdef PyObject *hit
        if place[0] < PyList_GET_SIZE(at.longer):
            found = <Beginning>PyList_GET_ITEM(at.longer, place[0])
            if found.key is key:
                place[0] += 1
                return found
        hit = PyDict_GetItemWithError(at.by_key, key)
        if hit != NULL:
            found = <Beginning>hit
            found.key, place[0] = key, found.place + 1
            return found
        found = Beginning(PyUnicode_Concat(PyUnicode_Concat(at.text, key), ":"), key)
        if self.known.n_beginnings < MANY_BEGINNINGS:
            self.known.n_beginnings += 1
            found.place, at.by_key[key] = len(at.longer), found
            at.longer.append(found)
        return found

    cdef inline int add_feature(self, Beginning at, object rest, float value) except -1:
        """Add a feature by the two parts of its name; `rest` is an exact str."""
        cdef int64_t size
        cdef const char *s
        if self.table is None:
            return self.record(self.find(at, rest), value)
        s = ascii_of(rest, &size)
        if s != NULL and at.place >= 0:
            return self.gather(&at.head, s, size, <PyObject *>rest, value)
        return self.add_coded(at, utf8(rest), value)

    cdef int add_coded(self, Beginning at, bytes rest, float value) except -1:
        """Gather a name whose rest is in UTF-8, as a whole if nothing else keeps its beginning."""
        if at.place < 0:
            at, rest = self.top, at.coded + rest
        return self.gather(&at.head, PyBytes_AS_STRING(rest), PyBytes_GET_SIZE(rest), <PyObject *>rest, value)

    cdef inline int gather(self, const Head *head, const char *rest, int64_t size, PyObject *owner,
                           float value) except -1:
        cdef Gathered *one
        if self.n_gathered == self.gathered_capacity and reserve(
                <void **>&self.gathered, &self.gathered_capacity, self.n_gathered + 1, sizeof(Gathered)) < 0:
            raise MemoryError
        one = &self.gathered[self.n_gathered]
        one.head, one.rest, one.size, one.owner, one.value = head, rest, size, owner, value
        Py_INCREF(<object>owner)
        self.n_gathered += 1
        return 0

    cdef int finish_token(self) except -1:
        """End a token: at once, or once its names are looked up."""
        if self.table is None:
            if self.end_token() < 0:
                raise MemoryError
            return 0
        if reserve(<void **>&self.ends, &self.ends_capacity, self.n_ends + 1, sizeof(int64_t)) < 0:
            raise MemoryError
        self.ends[self.n_ends] = self.n_gathered
        self.n_ends += 1
        return self.settle() if self.n_gathered >= ENOUGH else 0

    cdef int settle(self) except -1:
        """Record what is gathered."""
        cdef int status
        if self.n_gathered >= MANY:
            with nogil:
                status = self.look_up()
        else:
            status = self.look_up()
        if status < 0:
            raise MemoryError
        self.forget(0)
        self.n_ends = 0
        return 0

    cdef int look_up(self) noexcept nogil:
        """Record the features and the tokens that are gathered."""
        cdef Asked asked[TOGETHER]
        cdef int32_t ids[TOGETHER]
        cdef const Gathered *one
        cdef int64_t k, n, begin = 0, ended = 0
        cdef int status = 0
        while begin < self.n_gathered:
            n = min(<int64_t>TOGETHER, self.n_gathered - begin)
            for k in range(n):
                one = &self.gathered[begin + k]
                asked[k].head, asked[k].n_head, asked[k].rest = one.head.text, one.head.size, one.rest
                asked[k].n_rest, asked[k].h = one.size, spell(one.head.spelled, one.rest, one.size)
                self.table.expect(asked[k].h)
            self.table.find_all(asked, n, ids)
            for k in range(n):
                while ended < self.n_ends and self.ends[ended] == begin + k:
                    status |= self.end_token()
                    ended += 1
                if ids[k] >= 0:
                    status |= self.push(ids[k], self.gathered[begin + k].value)
            if status < 0:
                return -1
            begin += n
        while ended < self.n_ends:
            status |= self.end_token()
            ended += 1
        return status

    cdef void forget(self, int64_t kept) noexcept:
        """Give back the references to gathered names but the first ones."""
        cdef int64_t k
        for k in range(kept, self.n_gathered):
            Py_DECREF(<object>self.gathered[k].owner)
        self.n_gathered = kept

    cdef inline int record(self, int64_t id_, float value) except -1:
        if id_ >= 0:
            if self.grow and not self.hash_bits:
                self.counts[id_] += 1
            if self.push(<int32_t>id_, value) < 0:
                raise MemoryError
        return 0

    cdef int add_number(self, Beginning at, str key, float number) except -1:
        cdef int64_t id_
        if number == 0.0:
            return 0
        if self.table is not None:
            return self.add_feature(at, key, number)
        id_ = self.find(at, key)
        if number != 1.0 and id_ >= 0 and (self.grow or self.hash_bits):
            self.numbers.add(id_)
        return self.record(id_, number)

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

    cdef float number(self, Beginning at, str key, object value) except? -1.0:
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
        except (TypeError, ValueError):
            raise TypeError(
                f"{self.where()}: feature {at.text + key!r} has a value of type {type(value).__name__}; "
                "wanted a string, a number, a dict of them, a list or array of either, or a set of strings") from None
        except OverflowError:
            raise not_finite(self.first + self.n_sequences, self.token, at.text + key, "too large") from None
        narrow = <float>x
        if not isfinite(narrow):
            raise not_finite(self.first + self.n_sequences, self.token, at.text + key, x)
        return narrow

    cdef int add_item(self, Beginning at, object key, object value, Py_ssize_t *place, int depth) except -1:
        """One key and value of a dict, whose keys go on after `at`; `place` is where the key is expected there."""
        if not PyUnicode_CheckExact(key):
            return self.add_item(at, self.text(key), value, place, depth)
        if value is False:
            return 0
        if PyUnicode_CheckExact(value):
            return self.add_feature(self.below(at, key, place), value, 1.0)
        if value is True:
            return self.add_feature(at, key, 1.0)
        if PyFloat_CheckExact(value) or PyLong_Check(value):
            return self.add_number(at, key, self.number(at, key, value))
        if isinstance(value, (str, bytes)):
            return self.add_feature(self.below(at, key, place), self.text(value), 1.0)
        if isinstance(value, (dict, list, tuple, set, frozenset)):
            return self.add_nested(self.below(at, key, place), value, depth + 1)
        if getattr(value, "shape", ()) != () and hasattr(value, "tolist"):
            return self.add_nested(self.below(at, key, place), value.tolist(), depth + 1)
        return self.add_number(at, key, self.number(at, key, value))

    cdef int add_dict(self, dict features, Beginning at, int depth) except -1:
        cdef Py_ssize_t k = 0, place = 0
        cdef PyObject *key
        cdef PyObject *value
        cdef const Head *head
        cdef object name, inner     # a value's own methods may change the dict
        while PyDict_Next(features, &k, &key, &value):
            head = self.expected(at, key, place)
            if head != NULL and PyUnicode_CheckExact(<object>value) and is_compact_ascii(<object>value):
                place += 1
                self.gather(head, <const char *>PyUnicode_1BYTE_DATA(<object>value),
                            PyUnicode_GET_LENGTH(<object>value), value, 1.0)
                continue
            name, inner = <object>key, <object>value
            self.add_item(at, name, inner, &place, depth)
        return 0

    cdef inline const Head *expected(self, Beginning at, PyObject *key, Py_ssize_t place) noexcept:
        """The beginning of a known name, if its key is the one that mostly stands there; NULL: ask `below`."""
        cdef PyObject *found
        if self.table is None or place >= PyList_GET_SIZE(at.longer):
            return NULL
        found = item(at.longer, place)
        return &(<Beginning>found).head if <PyObject *>(<Beginning>found).key == key else NULL

    cdef int add_items(self, object features, Beginning at, int depth) except -1:
        """Keys and values of another mapping, which may end with the loop."""
        cdef Py_ssize_t place = 0
        for key, value in features.items():
            self.add_item(at, key, value, &place, depth)
        return 0

    cdef int add_nested(self, Beginning at, object value, int depth) except -1:
        cdef Py_ssize_t place = 0
        if depth > MAX_DEPTH:
            raise ValueError(f"{self.where()}: feature dicts are nested more than {MAX_DEPTH} deep")
        if type(value) is dict:
            return self.add_dict(value, at, depth)
        if isinstance(value, dict):
            return self.add_items(value, at, depth)
        if isinstance(value, (list, tuple)):
            for n, inner in enumerate(value):
                if isinstance(inner, (str, bytes)):
                    self.add_feature(at, self.text(inner), 1.0)
                else:
                    self.add_item(self.top, self.name_of_place(at.text[:-1], n), inner, &place, depth)
        else:
            for key in self.in_order(value):
                self.add_feature(at, self.text(key), 1.0)
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
        cdef object name            # its own methods may change the list
        if type(token) is dict:
            self.add_dict(token, self.top, 0)
        elif type(token) is list:
            while k < PyList_GET_SIZE(token):
                name = <object>PyList_GET_ITEM(token, k)
                self.add_name(name)
                k += 1
        elif type(token) is tuple:
            for k in range(PyTuple_GET_SIZE(token)):
                self.add_name(<object>PyTuple_GET_ITEM(token, k))
        elif isinstance(token, (list, tuple, set, frozenset)):
            for name in self.in_order(token):
                self.add_name(name)
        elif isinstance(token, dict) or (hasattr(token, "items") and hasattr(token, "keys")):
            self.add_items(token, self.top, 0)
        else:
            raise TypeError(
                f"{self.where()}: a token must be a dict of features or a list of attribute "
                f"strings, got {token!r:.40} of type {type(token).__name__}")
        return 0

    cdef int add_name(self, object name) except -1:
        """An attribute string, without a prefix."""
        return self.add_feature(self.top, self.text(name), 1.0)

    def add(self, sequence):
        """Add one sequence of tokens."""
        if isinstance(sequence, (str, bytes, dict)) or not hasattr(sequence, "__iter__"):
            hint = "; text.split() makes one, and X of one alone is [tokens]" if isinstance(sequence, str) else ""
            raise TypeError(f"sequence {self.first + self.n_sequences} must be a list of tokens, got "
                            f"{type(sequence).__name__}{hint}")
        self.token = 0
        self.forget(self.ends[self.n_ends - 1] if self.n_ends else 0)  # the rest of a token that has failed
        for token in sequence:
            self.add_token(token)
            self.finish_token()
            self.token += 1
            if self.token & 4095 == 0:
                PyErr_CheckSignals()
        self.end_sequence()
        self.offsets[self.n_sequences] += self.n_ends

    def finish(self, remap=None):
        """See `TokenBuffer.finish`."""
        self.settle()
        return TokenBuffer.finish(self, remap)


# ---- columns of tokens --------------------------------------------------------------------------


def count_columns(token, dict counts, dict names):
    """Count the columns of a token: keys of a dict, those of strings with a colon; or attributes up to ':' or '='.

    Parameters
    ----------
    token : mapping, or list, tuple or set of str or bytes
        Any other token has no columns.
    counts : dict of str to int
        Tokens with each column; 1 is added for those of this token.
    names : dict
        Cache: keys of strings, with their colons.
    """
    cdef set found
    if hasattr(token, "items"):
        for key, value in token.items():
            if isinstance(value, (str, bytes)):
                name = names.get(key)
                if name is None:
                    name = names[key] = f"{decoded(key)}:"
            else:
                name = key if PyUnicode_CheckExact(key) else str(decoded(key))
            add_one(counts, name)
    elif isinstance(token, (list, tuple, set, frozenset)):
        found = set()
        for name in token:
            name = decoded(name)
            if isinstance(name, str):
                name = beginning(name)
                if name is not None:
                    PySet_Add(found, name)
        for name in sorted(found):
            add_one(counts, name)


def in_all_tokens(sequences, columns):
    """The columns, of these, that all tokens have as `count_columns` counts them.

    Parameters
    ----------
    sequences : list or tuple of lists or tuples
    columns : iterable of str

    Returns
    -------
    list of str
    """
    cdef list left = list(columns), counted
    cdef list keys = [name[:-1] if name.endswith(":") else name for name in left]
    cdef list places = [0] * len(left)      # where each was in the last list of attributes
    cdef Py_ssize_t k
    for sequence in sequences:
        PyErr_CheckSignals()
        for token in sequence:
            k = 0
            while k < len(left) and has_surely(token, left[k], keys[k], places, k):
                k += 1
            if k == len(left):
                continue
            counts = {}
            count_columns(token, counts, {})
            counted = [j for j in range(len(left)) if left[j] in counts]
            if len(counted) < len(left):
                left, keys, places = [left[j] for j in counted], [keys[j] for j in counted], [0] * len(counted)
            if not left:
                return left
    return left


cdef bint has_surely(token, str column, str key, list places, Py_ssize_t k) except -1:
    """Whether a dict, or a list or tuple of attributes, has a column; False where only `count_columns` tells."""
    cdef Py_ssize_t i, t, n, size = len(column)
    cdef PyObject *value
    if type(token) is dict:
        value = PyDict_GetItemWithError(token, key)
        return value != NULL and isinstance(<object>value, (str, bytes)) == (len(key) < size)
    if type(token) not in (list, tuple) or beginning(column) != column:
        return False
    n = len(token)
    for t in range(n):      # mostly where it was in the token before
        i = (t + <Py_ssize_t>places[k]) % n
        name = token[i]
        if isinstance(name, str) and PyUnicode_Tailmatch(name, column, 0, size, -1):
            places[k] = i
            return True
    return False


cdef object decoded(name):
    """A name, of bytes as text; those that are not UTF-8 are refused when they are encoded."""
    return (<bytes>name).decode("utf-8", "replace") if isinstance(name, bytes) else name


def are_usual(list sequences, tuple texts, tuple others, known, Py_ssize_t step):
    """Whether tokens are dicts that all have the usual columns, and the first has no column of texts but known ones.

    Parameters
    ----------
    sequences : list of list
    texts, others : tuples of str
        Keys that are usual: of texts, without their colons, and of all else.
    known : set of str
        Keys of the texts that training had.
    step : int
        From one token that is looked at to the next, through all sequences.

    Returns
    -------
    bool
        False also for tokens that this does not understand.
    """
    cdef Py_ssize_t t = 0, n = 0
    cdef PyObject *value
    cdef list sequence
    for sequence in sequences:
        while t < PyList_GET_SIZE(sequence):
            token = sequence[t]
            if type(token) is not dict or not has_plain_keys(token):
                return False
            for key in texts:
                value = PyDict_GetItemWithError(token, key)
                if value == NULL or not isinstance(<object>value, (str, bytes)):
                    return False
            for key in others:
                value = PyDict_GetItemWithError(token, key)
                if value == NULL or isinstance(<object>value, (str, bytes)):
                    return False
            if n == 0 and has_strange(token, known):
                return False
            n += 1
            t += step
        t -= PyList_GET_SIZE(sequence)
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
        if isinstance(value, (str, bytes)):
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
