/* tests/cases/queue_bytes_wrap.c - a queue with a limit near 2^64 bytes is full. Ten bytes more are accepted,
 * because the sum of all bytes exceeds 2^64 and begins at 0 again. */
#include "cases.h"

int main(void)
{
    ditto_queue_options options = DITTO_QUEUE_OPTIONS_INIT;
    ditto_queue *queue;
    options.max_bytes = UINT64_MAX - 1;
    MUST(ditto_queue_create(&options, &queue));
    MUST(ditto_queue_put(queue, 0, queue, UINT64_MAX - 1, 0));
    ditto_status status = told("put", ditto_queue_put(queue, 0, queue, 10, 0));
    MUST(ditto_queue_destroy(queue));
    return status == DITTO_ERR_TIMED_OUT ? RIGHT : WRONG;
}
