/* src/coordinator/encoded.c - functions and results as bytes. See encoded.h. */
#include "coordinator/encoded.h"
#include "base/errors/sent_error.h"
#include "base/errors/status.h"
#include "base/types/types.h"

#include <stdlib.h>
#include <string.h>

/* Nests in nests, more than which nobody makes. They keep the recursion short. */
#define MOST_LEVELS 64

/* -- copies -- */

static void encode_copied(struct dti_bytes *to, const struct dti_copied *c)
{
    dti_bytes_put_u64(to, (uint64_t)c->tensor.dtype);
    if (c->tensor.dtype == 0) {
        dti_bytes_put_u64(to, c->members);
        for (uint32_t i = 0; i < c->members; i++) {
            dti_bytes_put(to, c->member[i].name, sizeof c->member[i].name);
            encode_copied(to, c->member[i].value);
        }
        return;
    }
    dti_bytes_put_u64(to, c->tensor.rank);
    for (uint32_t i = 0; i < c->tensor.rank; i++)
        dti_bytes_put_u64(to, c->tensor.shape[i]);
    dti_bytes_put(to, c->tensor.data, ditto_tensor_bytes(&c->tensor));
}

static ditto_status decode_copied(struct dti_bytes_reader *from, int levels, struct dti_copied **out);

static ditto_status decode_nest(struct dti_bytes_reader *from, int levels, struct dti_copied **out)
{
    uint64_t members = dti_bytes_get_at_most(from, (uint64_t)(from->end - from->at));
    ditto_status status = dti_bytes_reader_status(from);
    struct dti_copied *nest;
    if (status == DITTO_OK && levels == 0)
        status = DTI_FAIL(DITTO_ERR_CORRUPT, "a nest of another host has more than %d levels", MOST_LEVELS);
    if (status != DITTO_OK)
        return status;
    DTI_TRY(dti_copied_nest((uint32_t)members, &nest));
    for (uint32_t i = 0; i < members && status == DITTO_OK; i++) {
        dti_bytes_get(from, nest->member[i].name, sizeof nest->member[i].name);
        nest->member[i].name[sizeof nest->member[i].name - 1] = '\0';
        status = decode_copied(from, levels - 1, &nest->member[i].value);
        nest->members += status == DITTO_OK;
    }
    if (status != DITTO_OK)
        dti_copied_drop(nest);
    else
        *out = nest;
    return status;
}

static ditto_status decode_tensor(struct dti_bytes_reader *from, ditto_dtype dtype, struct dti_copied **out)
{
    ditto_tensor tensor = { .dtype = dtype };
    size_t bytes;
    tensor.rank = (uint32_t)dti_bytes_get_at_most(from, DITTO_MAX_RANK);
    for (uint32_t i = 0; i < tensor.rank; i++)
        tensor.shape[i] = dti_bytes_get_u64(from);
    DTI_TRY(dti_bytes_reader_status(from));
    DTI_TRY(dti_tensor_check(&tensor, &bytes));
    if (bytes > (size_t)(from->end - from->at))
        return DTI_FAIL(DITTO_ERR_CORRUPT, "a tensor of another host is longer than its message");
    tensor.data = (void *)(uintptr_t)from->at; /* it is only read */
    DTI_TRY(dti_copied_tensor(&tensor, out));
    from->at += bytes;
    return DITTO_OK;
}

static ditto_status decode_copied(struct dti_bytes_reader *from, int levels, struct dti_copied **out)
{
    uint64_t dtype = dti_bytes_get_at_most(from, 255);
    DTI_TRY(dti_bytes_reader_status(from));
    return dtype == 0 ? decode_nest(from, levels, out) : decode_tensor(from, (ditto_dtype)dtype, out);
}

static void encode_optional(struct dti_bytes *to, const struct dti_copied *c)
{
    dti_bytes_put_u64(to, c != NULL);
    if (c != NULL)
        encode_copied(to, c);
}

static ditto_status decode_optional(struct dti_bytes_reader *from, struct dti_copied **out)
{
    uint64_t is_there = dti_bytes_get_at_most(from, 1);
    *out = NULL;
    DTI_TRY(dti_bytes_reader_status(from));
    return is_there != 0 ? decode_copied(from, MOST_LEVELS, out) : DITTO_OK;
}

/* -- functions -- */

void dti_encode_function(struct dti_bytes *to, const char *name, bool wanted,
                         const struct dti_copied *arguments)
{
    char padded[DITTO_MAX_FUNCTION_NAME_BYTES + 1] = "";
    strncpy(padded, name, sizeof padded - 1);
    dti_bytes_put(to, padded, sizeof padded);
    dti_bytes_put_u64(to, wanted);
    encode_optional(to, arguments);
}

ditto_status dti_decode_function(const void *data, size_t bytes, char name[DITTO_MAX_FUNCTION_NAME_BYTES + 1],
                                 bool *wanted, struct dti_copied **arguments)
{
    struct dti_bytes_reader from = { .at = data, .end = (const char *)data + bytes };
    dti_bytes_get(&from, name, DITTO_MAX_FUNCTION_NAME_BYTES + 1);
    name[DITTO_MAX_FUNCTION_NAME_BYTES] = '\0';
    *wanted = dti_bytes_get_at_most(&from, 1) != 0;
    return decode_optional(&from, arguments);
}

/* -- results -- */

void dti_encode_result(struct dti_bytes *to, ditto_status status, const struct dti_copied *result)
{
    dti_bytes_put_status(to, status);
    encode_optional(to, result);
}

ditto_status dti_decode_result(const void *data, size_t bytes, uint32_t host, const char *name,
                               struct dti_copied **result)
{
    struct dti_bytes_reader from = { .at = data, .end = (const char *)data + bytes };
    ditto_status status = dti_bytes_get_status(&from, host, name);
    *result = NULL;
    if (status >= 0)
        DTI_TRY(decode_optional(&from, result));
    return status;
}
