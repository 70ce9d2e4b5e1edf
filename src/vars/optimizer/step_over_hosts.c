/* src/vars/optimizer/step_over_hosts.c - the part of a step that other hosts take on their shards
 * (over_hosts.h). Each of them gets a request for each variable, with the gradient of its shards. */
#include "vars/optimizer/optimizer.h"
#include "vars/parameters/over_hosts.h"
#include "vars/parameters/parameter.h"

struct step_call {
    const struct dti_replica *self;
    const struct dti_applying *applying;
    double learning_rate, factor;
    uint32_t variable;
};

/* If the worker has several replicas, they share the hosts. */
static bool ask_for_step(void *context, uint32_t host, struct dti_bytes *request)
{
    const struct step_call *c = context;
    const ditto_optimizer *o = c->applying->optimizer;
    if (host % c->self->num_replicas != c->self->index)
        return false;
    dti_put_request(request, &(struct dti_parameter_request){ .what = DTI_ASK_STEP,
                                                              .number = o->stamp,
                                                              .count = c->variable,
                                                              .steps = c->applying->step.number,
                                                              .rate = c->learning_rate,
                                                              .factor = c->factor });
    dti_put_shards_of(request, o->variable[c->variable], host, c->applying->gradient[c->variable].data);
    return true;
}

static void nothing(void *context)
{
    (void)context;
}

ditto_status dti_step_on_other_hosts(const struct dti_replica *self, const struct dti_applying *a,
                                     double learning_rate, double factor)
{
    struct step_call call = { .self = self, .applying = a, .learning_rate = learning_rate, .factor = factor };
    for (; call.variable < a->optimizer->count; call.variable++)
        DTI_TRY(dti_ask_owners(&(struct dti_asking){ .v = a->optimizer->variable[call.variable],
                                                     .own = nothing,
                                                     .put = ask_for_step,
                                                     .context = &call }));
    return DITTO_OK;
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
