/* As much of XLA's foreign function interface as a handler needs, which compiled programs call with their arrays:
 * versions 0.1 to 0.3, which do not differ in it. Each structure begins with its size, so that a handler reads only
 * what is there.
 */
#ifndef STRUCTSVM_XLA_H
#define STRUCTSVM_XLA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <Python.h>

enum { XLA_MAJOR = 0, XLA_OLDEST = 1, XLA_NEWEST = 3 };     /* versions */
enum { XLA_ASKS_VERSION = 1, XLA_IS_ARRAY = 1, XLA_IS_SCALAR = 3, XLA_IS_TEXT = 4, XLA_EXECUTES = 3, XLA_INTERNAL = 13 };
enum { XLA_INT32 = 4, XLA_INT64 = 5, XLA_FLOAT = 11, XLA_DOUBLE = 12 };   /* types */

#define XLA_SIZE(structure, last) (offsetof(structure, last) + sizeof(((structure *)0)->last))

typedef struct xla_extension {
    size_t size;
    int kind;
    struct xla_extension *next;
} xla_extension;

typedef struct {
    size_t size;
    xla_extension *extensions;
    int major, minor;
} xla_version;

typedef struct {
    size_t size;
    xla_version version;
    uint32_t traits;
} xla_answer;

typedef struct {
    xla_extension extension;
    xla_answer *answer;
} xla_question;

typedef struct {
    size_t size;
    xla_extension *extensions;
    int type;
    void *data;
    int64_t n_axes, *shape;
} xla_array;

typedef struct {
    size_t size;
    xla_extension *extensions;
    int64_t n;
    int *kinds;
    void **items;
} xla_arrays;

typedef struct {
    int type;
    void *value;
} xla_scalar;

typedef struct {
    const char *start;
    size_t size;
} xla_text;

typedef struct {
    size_t size;
    xla_extension *extensions;
    int64_t n;
    int *kinds;
    xla_text **names;
    void **items;
} xla_attributes;

typedef struct {
    size_t size;
    xla_extension *extensions;
    const char *message;
    int code;
} xla_failure;

typedef struct {
    size_t size;
    xla_extension *extensions;
    xla_version version;
    const void *internal;
    void *(*fail)(xla_failure *failure);
} xla_functions;

typedef struct {
    size_t size;
    xla_extension *extensions;
    const xla_functions *functions;
    void *context;
    int stage;
    xla_arrays arguments, results;
    xla_attributes attributes;
} xla_call;

/* Whether a call only asks for the handler's version, which it gets. */
static inline int xla_answered(const xla_call *call, int minor) {
    if (call->size < XLA_SIZE(xla_call, extensions)) return 0;
    const xla_extension *extension = call->extensions;
    while (extension != NULL && extension->kind != XLA_ASKS_VERSION) extension = extension->next;
    if (extension == NULL || extension->size < sizeof(xla_question)) return 0;
    xla_answer *answer = ((const xla_question *)extension)->answer;
    if (answer->size >= XLA_SIZE(xla_answer, traits) && answer->version.size >= XLA_SIZE(xla_version, minor)) {
        answer->version.major = XLA_MAJOR;
        answer->version.minor = minor;
    }
    return 1;
}

static inline int xla_are_known(const xla_arrays *arrays) {
    if (arrays->size != sizeof *arrays) return 0;
    for (int64_t k = 0; k < arrays->n; k++) {
        const xla_array *array = arrays->items[k];
        if (arrays->kinds[k] != XLA_IS_ARRAY || array->size < XLA_SIZE(xla_array, shape)) return 0;
    }
    return 1;
}

static inline const void *xla_attribute(const xla_attributes *attributes, const char *name, int kind) {
    for (int64_t k = 0; k < attributes->n; k++) {
        const xla_text *own = attributes->names[k];
        if (own->size == strlen(name) && memcmp(own->start, name, own->size) == 0)
            return attributes->kinds[k] == kind ? attributes->items[k] : NULL;
    }
    return NULL;
}

/* Whether a call is laid out as above: arrays, a text `function`, and an integer `quick`. */
static inline int xla_is_known(const xla_call *call, xla_text *function, int64_t *quick) {
    if (call->size < XLA_SIZE(xla_call, attributes) || call->functions->version.major != XLA_MAJOR) return 0;
    if (call->stage != XLA_EXECUTES || !xla_are_known(&call->arguments) || !xla_are_known(&call->results)) return 0;
    if (call->attributes.size != sizeof call->attributes) return 0;
    const xla_text *text = xla_attribute(&call->attributes, "function", XLA_IS_TEXT);
    const xla_scalar *flag = xla_attribute(&call->attributes, "quick", XLA_IS_SCALAR);
    if (text == NULL || flag == NULL || flag->type != XLA_INT64) return 0;
    *function = *text;
    *quick = *(const int64_t *)flag->value;
    return 1;
}

/* An error that the program raises. Without a way to say so, the process ends: the results would be anything. */
static inline void *xla_failed(const xla_call *call, const char *message) {
    if (call->size < XLA_SIZE(xla_call, functions) || call->functions->size < XLA_SIZE(xla_functions, fail))
        Py_FatalError(message);
    xla_failure failure = {XLA_SIZE(xla_failure, code), NULL, message, XLA_INTERNAL};
    return call->functions->fail(&failure);
}

#endif
