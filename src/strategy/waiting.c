/* src/strategy/waiting.c - finds how the threads of a strategy wait: an option wins over the environment,
 * and the environment over the default. */
#include "strategy/strategy.h"

static const char *const names[] = {
    [DITTO_WAIT_DEFAULT] = "default", [DITTO_WAIT_ACTIVE] = "active", [DITTO_WAIT_PASSIVE] = "passive"
};
enum { POLICIES = sizeof names / sizeof names[0] };

ditto_status dti_waiting_read(const ditto_strategy_options *o, struct dti_team_options *out)
{
    /* What the environment says. A negative spin_us means that it gives none. */
    int wait = DITTO_WAIT_DEFAULT;
    int64_t spin_us = -1;

    bool has_spin_us = o->spin_us != 0 || o->has_spin_us;
    if ((int)o->wait < 0 || (int)o->wait >= POLICIES)
        return DTI_FAIL(DITTO_ERR_RANGE, "wait = %d is not a value of its enum", (int)o->wait);
    if (has_spin_us && o->wait != DITTO_WAIT_DEFAULT)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "spin_us = %u and wait = %s contradict each other: set only one of them", o->spin_us,
                        names[o->wait]);
    DTI_TRY(dti_environment_word("DITTO_WAIT", names, POLICIES, &wait));
    DTI_TRY(dti_environment_number("DITTO_SPIN_US", 0, UINT32_MAX, "microseconds", &spin_us));
    if (spin_us >= 0 && wait != DITTO_WAIT_DEFAULT)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "the environment variables DITTO_SPIN_US = %u and DITTO_WAIT = %s contradict each other: "
            "set only one of them",
            (uint32_t)spin_us, names[wait]);
    bool has_option = has_spin_us || o->wait != DITTO_WAIT_DEFAULT;
    out->wait = has_option ? o->wait : (ditto_wait_policy)wait;
    out->has_spin_us = has_option ? has_spin_us : spin_us >= 0;
    out->spin_us = has_option || spin_us < 0 ? o->spin_us : (uint32_t)spin_us;
    return DITTO_OK;
}

/* Returns the number of replicas whose threads do not spin now, because there are too many threads. */
static uint32_t count_not_spinning(const struct dti_team *team)
{
    uint32_t count = 0, epoch;
    for (uint32_t i = 0; i < dti_team_num_replicas(team); i++)
        count += dti_team_wait_policy(team, dti_team_replica(team, i)->pu.number, &epoch).spin_ns == 0;
    return count;
}

void dti_waiting_describe(const struct dti_team *team, struct dti_text *text)
{
    const struct dti_team_options *o = dti_team_options(team);
    bool is_passive = o->wait == DITTO_WAIT_PASSIVE, spins = !o->has_spin_us || o->spin_us != 0;
    uint32_t others = count_not_spinning(team);
    if (!spins)
        dti_text_add(text, "waiting threads sleep at once");
    else if (o->has_spin_us || is_passive)
        dti_text_add(text, "waiting threads spin for %u us, then sleep",
                     is_passive ? DTI_SPIN_LEAST_NS / 1000 : o->spin_us);
    else
        dti_text_add(text, "waiting threads spin for %s, then sleep",
                     o->wait == DITTO_WAIT_ACTIVE ? "10 s" : "as long as that pays");
    if (others > 0 && spins)
        dti_text_add(text,
                     " (those of %u of %u replicas %s instead, because threads share PUs or a CPU quota)",
                     others, dti_team_num_replicas(team), is_passive ? "sleep at once" : "yield");
    dti_text_add(text, "\n");
}
