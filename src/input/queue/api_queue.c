/* src/input/queue/api_queue.c - the functions of include/ditto/queue.h, which check their arguments. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "input/queue/queue.h"

static inline ditto_status check_producer(const ditto_queue *queue, uint32_t producer)
{
    if (__builtin_expect(producer < queue->producers, 1))
        return DITTO_OK;
    return DTI_FAIL(DITTO_ERR_RANGE, "producer is %u, but the queue has %u producers, numbered from 0",
                    producer, queue->producers);
}

/* Returns DITTO_ERR_RANGE also if the bytes can never fit. */
static inline ditto_status check_item(const ditto_queue *queue, uint32_t producer, uint64_t bytes)
{
    DTI_TRY(dti_not_null(queue, "queue"));
    DTI_TRY(check_producer(queue, producer));
    if (queue->max_bytes != 0 && bytes > queue->max_bytes)
        return DTI_FAIL(DITTO_ERR_RANGE, "an item of %llu bytes never fits: max_bytes is %llu",
                        (unsigned long long)bytes, (unsigned long long)queue->max_bytes);
    if (queue->payload != NULL && bytes > queue->payload_bytes)
        return DTI_FAIL(DITTO_ERR_RANGE, "an item of %llu bytes never fits: slots have %llu bytes",
                        (unsigned long long)bytes, (unsigned long long)queue->payload_bytes);
    return DITTO_OK;
}

ditto_status ditto_queue_create(const ditto_queue_options *options, ditto_queue **out)
{
    ditto_queue_options known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_queue_options"));
    if (known.has_node == 0 && known.node != 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "options->node is %u, but has_node is 0: set both", known.node);
    if (known.num_slots > DITTO_MAX_QUEUE_SLOTS)
        return DTI_FAIL(DITTO_ERR_RANGE, "num_slots is %u: at most %u", known.num_slots,
                        DITTO_MAX_QUEUE_SLOTS);
    if (known.num_producers > DITTO_MAX_QUEUE_PRODUCERS)
        return DTI_FAIL(DITTO_ERR_RANGE, "num_producers is %u: at most %u", known.num_producers,
                        DITTO_MAX_QUEUE_PRODUCERS);
    return dti_queue_create(&known, out);
}

ditto_status ditto_queue_destroy(ditto_queue *queue)
{
    DTI_ENTER();
    return queue == NULL ? DITTO_OK : dti_queue_destroy(queue);
}

ditto_status ditto_queue_put(ditto_queue *queue, uint32_t producer, void *item, uint64_t bytes,
                             uint32_t timeout_ms)
{
    DTI_ENTER_QUICKLY();
    DTI_TRY(check_item(queue, producer, bytes));
    if (item == NULL && bytes != 0 && queue->payload != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "item is NULL, but %llu bytes are to be copied from it",
                        (unsigned long long)bytes);
    return dti_queue_put(queue, producer, item, bytes, timeout_ms);
}

ditto_status ditto_queue_claim(ditto_queue *queue, uint32_t producer, uint64_t bytes, uint32_t timeout_ms,
                               uint64_t *ticket, void **payload)
{
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_not_null(ticket, "ticket"));
    DTI_TRY(check_item(queue, producer, bytes));
    return dti_queue_claim(queue, producer, bytes, timeout_ms, ticket, payload);
}

ditto_status ditto_queue_publish(ditto_queue *queue, uint32_t producer, uint64_t ticket, void *item,
                                 uint64_t bytes)
{
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_not_null(queue, "queue"));
    DTI_TRY(check_producer(queue, producer));
    if (queue->payload != NULL && item != NULL)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "item is %p, but the slots have memory (payload_bytes): write the item to the slot's "
                        "payload, and publish NULL",
                        item);
    return dti_queue_publish(queue, producer, ticket, item, bytes);
}

ditto_status ditto_queue_fail(ditto_queue *queue, uint32_t producer, uint64_t ticket, ditto_status status,
                              const char *message)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(queue, "queue"));
    DTI_TRY(check_producer(queue, producer));
    if (status >= DITTO_OK)
        return DTI_FAIL(DITTO_ERR_INVALID, "status is %d, which is not an error", (int)status);
    if (ticket != DITTO_ALL_TICKETS)
        return dti_queue_fail(queue, producer, ticket, status, message);
    dti_queue_abandon(queue, producer, status, message);
    return DITTO_OK;
}

ditto_status ditto_queue_get(ditto_queue *queue, uint32_t timeout_ms, ditto_queue_item *out)
{
    DTI_ENTER_QUICKLY();
    DTI_TRY(dti_not_null(queue, "queue"));
    if (__builtin_expect(out == NULL, 0))
        return dti_not_null(out, "out");
    return dti_queue_get(queue, out, timeout_ms);
}

ditto_status ditto_queue_close(ditto_queue *queue)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(queue, "queue"));
    dti_queue_close(queue);
    return DITTO_OK;
}

ditto_status ditto_queue_stats(const ditto_queue *queue, ditto_queue_counters *out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(queue, "queue"));
    DTI_TRY(dti_result_check(out, "ditto_queue_counters"));
    ditto_queue_counters found;
    dti_queue_stats(queue, &found);
    dti_result_store(out, &found, sizeof found);
    return DITTO_OK;
}
