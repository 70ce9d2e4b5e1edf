/* src/vars/optimizer/step_over_hosts.c - a step of which other hosts take the part on their shards
 * (over_hosts.h). Each of them gets a request for each variable, with the gradient of its shards. All
 * requests are sent before this host takes its own part. */
#include "vars/optimizer/optimizer.h"
#include "vars/parameters/over_hosts.h"
#include "vars/parameters/parameter.h"

#include <stdlib.h>

struct step_of_variable {
    const struct dti_step_over_hosts *step;
    uint32_t variable;
};

/* If the worker has several replicas, they share the hosts. */
static bool ask_for_step(void *context, uint32_t host, struct dti_bytes *request)
{
    const struct step_of_variable *c = context;
    const struct dti_step_over_hosts *step = c->step;
    const ditto_optimizer *o = step->applying->optimizer;
    if (host % step->self->num_replicas != step->self->index)
        return false;
    dti_put_request(request, &(struct dti_parameter_request){ .what = DTI_ASK_STEP,
                                                              .number = o->stamp,
                                                              .count = c->variable,
                                                              .steps = step->applying->step.number,
                                                              .rate = step->learning_rate,
                                                              .factor = step->factor });
    dti_put_shards_of(request, o->variable[c->variable], host, step->applying->gradient[c->variable].data);
    return true;
}

/* The own part of all variables is taken at once. */
static void take_own_part(void *context)
{
    const struct step_of_variable *c = context;
    if (c->variable == 0)
        c->step->own(c->step);
}

ditto_status dti_step_over_hosts(const struct dti_step_over_hosts *step)
{
    const ditto_optimizer *o = step->applying->optimizer;
    struct dti_asking *asking = calloc(o->count, sizeof *asking);
    struct step_of_variable *each = calloc(o->count, sizeof *each);
    ditto_status status = DITTO_OK;
    if (asking == NULL || each == NULL)
        status = DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a step of \"%s\", which has %u variables",
                          o->name, o->count);
    for (uint32_t k = 0; status == DITTO_OK && k < o->count; k++) {
        each[k] = (struct step_of_variable){ step, k };
        asking[k] = (struct dti_asking){ .v = o->variable[k],
                                         .own = take_own_part,
                                         .put = ask_for_step,
                                         .context = &each[k],
                                         .changes = true };
    }
    if (status == DITTO_OK)
        status = dti_ask_owners_of_all(asking, o->count);
    free(asking);
    free(each);
    return status;
}

static ditto_status take_number(void *context, uint32_t host, struct dti_bytes_reader *answer)
{
    (void)host;
    dti_bytes_get(answer, context, sizeof(int64_t));
    return dti_bytes_reader_status(answer);
}

ditto_status dti_ask_for_number(const ditto_optimizer *o, const ditto_apply_options *options, int64_t *number)
{
    const struct dti_parameter_request request = { .what = DTI_ASK_NUMBER,
                                                   .flag = options->has_read_steps != 0,
                                                   .number = o->stamp,
                                                   .steps = options->read_steps };
    return dti_ask_host(o->iterations, o->iterations->host_of_piece[0], &request, take_number, number);
}
