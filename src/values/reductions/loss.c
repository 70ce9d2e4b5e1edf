/* src/values/reductions/loss.c - average losses and regularization, see include/ditto/loss.h. */
#include "base/types/convert.h"
#include "sync/kernels/local_reduction.h"
#include "sync/kernels/tree.h"
#include "sync/sync.h"

#include <ditto/loss.h>
#include <string.h>

static ditto_status check_float(const ditto_tensor *t, const char *name)
{
    size_t bytes;
    DTI_TRY(dti_tensor_check(t, &bytes));
    DTI_TRY(dti_buffer_check(t->data, bytes, t->dtype, name));
    if (!dti_dtype_is_float(t->dtype) || dti_dtype_class_of(t->dtype) == DTI_CLASS_COMPLEX)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED, "%s are %s: losses are real floating numbers", name,
                        ditto_dtype_name(t->dtype));
    return DITTO_OK;
}

static ditto_status check_weights(const ditto_tensor *losses, const ditto_tensor *weights)
{
    DTI_TRY(check_float(weights, "weights"));
    if (weights->dtype != losses->dtype)
        return DTI_FAIL(DITTO_ERR_INVALID, "weights are %s, losses %s", ditto_dtype_name(weights->dtype),
                        ditto_dtype_name(losses->dtype));
    bool same = weights->rank == losses->rank || weights->rank <= 1;
    for (uint32_t d = 0; same && d < weights->rank; d++)
        same = weights->shape[d] == losses->shape[d];
    if (same)
        return DITTO_OK;
    char weights_spec[DTI_SPEC_TEXT_BYTES], losses_spec[DTI_SPEC_TEXT_BYTES];
    dti_spec_text(weights, weights_spec);
    dti_spec_text(losses, losses_spec);
    return DTI_FAIL(
        DITTO_ERR_SHAPE,
        "weights are %s, losses %s: weights have the shape of the losses, or one dimension as long as "
        "their first, or are one number",
        weights_spec, losses_spec);
}

/* Writes elements [first, first + count) of the losses, multiplied by their weights, to out. */
static void weigh(const ditto_tensor *losses, const ditto_tensor *weights, size_t first, size_t count,
                  double *out)
{
    size_t element_bytes = ditto_dtype_bytes(losses->dtype),
           row_count = dti_tensor_count(losses) / losses->shape[0];
    dti_to_f64(out, losses->dtype, (const char *)losses->data + first * element_bytes, count);
    for (size_t i = 0; weights != NULL && i < count; i++) {
        size_t at = weights->rank == 0              ? 0
                    : weights->rank == losses->rank ? first + i
                                                    : (first + i) / row_count;
        double weight;
        dti_to_f64(&weight, weights->dtype, (const char *)weights->data + at * element_bytes, 1);
        out[i] *= weight;
    }
}

/* Adds the weighted losses of blocks [first, end), in the same order as src/sync/algorithms/block_sum.c. */
static double sum_blocks(const ditto_tensor *losses, const ditto_tensor *weights, size_t first, size_t end)
{
    double block[DITTO_BLOCK_ELEMENTS];
    if (end - first > 1) {
        size_t middle = dti_tree_split(first, end);
        double left = sum_blocks(losses, weights, first, middle);
        return left + sum_blocks(losses, weights, middle, end);
    }
    size_t at = first * DITTO_BLOCK_ELEMENTS, remaining = dti_tensor_count(losses) - at;
    size_t count = remaining < DITTO_BLOCK_ELEMENTS ? remaining : DITTO_BLOCK_ELEMENTS;
    weigh(losses, weights, at, count, block);
    dti_fold_rows(dti_kernel_of(DITTO_F64, DITTO_SUM), block, count, 1, sizeof *block);
    return block[0];
}

ditto_status ditto_average_loss(ditto_replica *self, const ditto_tensor *losses, const ditto_tensor *weights,
                                uint64_t global_batch, double *out)
{
    DTI_ENTER_QUICKLY();
    struct dti_replica *r;
    DTI_TRY(dti_self(self, &r));
    DTI_TRY(dti_not_null(losses, "losses"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(check_float(losses, "losses"));
    if (losses->rank == 0)
        return DTI_FAIL(
            DITTO_ERR_SHAPE,
            "a loss of rank 0 is one number: give the losses of each example, so that it is known "
            "how many there are");
    if (weights != NULL)
        DTI_TRY(check_weights(losses, weights));
    size_t count = dti_tensor_count(losses),
           blocks = count / DITTO_BLOCK_ELEMENTS + (count % DITTO_BLOCK_ELEMENTS != 0);
    double divisor = global_batch != 0 ? (double)global_batch : (double)losses->shape[0] * r->all_replicas;
    struct dti_fenv saved = dti_fenv_enter();
    *out = blocks != 0 ? sum_blocks(losses, weights, 0, blocks) / divisor : 0;
    dti_fenv_leave(saved);
    return DITTO_OK;
}
