/* src/strategy/runs/run_on_hosts.c - begins and ends runs over several hosts. See run_on_hosts.h. */
#include "strategy/runs/run_on_hosts.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "input/input.h"
#include "sync/hosts/hosts.h"

/* Compares the notes of two neighbouring hosts. */
static bool differ(const struct dti_hosts *hosts, uint32_t host, struct dti_different_rows *out)
{
    size_t bytes, next_bytes;
    const struct dti_chosen_rows *rows = dti_hosts_note(hosts, host, &bytes),
                                 *next = dti_hosts_note(hosts, host + 1, &next_bytes);
    return dti_chosen_rows_differ(rows, (uint32_t)(bytes / sizeof *rows), next,
                                  (uint32_t)(next_bytes / sizeof *next), out);
}

static ditto_status fail_different(ditto_strategy *strategy, uint32_t host,
                                   const struct dti_different_rows *d)
{
    const struct dti_hosts *hosts = strategy->hosts;
    char names[400] = "", dataset[200] = "";
    struct dti_text text = { names, sizeof names, 0 }, of = { dataset, sizeof dataset, 0 };
    dti_describe_host(hosts->cluster, host, &text);
    dti_text_add(&text, " and ");
    dti_describe_host(hosts->cluster, host + 1, &text);
    dti_input_describe_dataset(strategy->base.team, d->iterator, &of);
    dti_input_rows_reported(strategy->base.team, d->iterator);
    DTI_FAIL(DITTO_ERR_DIVERGED,
             "%s have chosen different rows of %s in steps 0 to %llu: its files, generators and functions "
             "must give the same rows on both",
             names, dataset, (unsigned long long)d->steps - 1);
    return dti_hosts_close(hosts->cluster, hosts->timeout_ms);
}

/* Returns DIVERGED on all hosts if two of them have chosen different rows of the same input. Their notes say
 * what they have chosen. */
static ditto_status compare_rows(ditto_strategy *strategy)
{
    struct dti_different_rows found;
    for (uint32_t h = 0; h + 1 < dti_hosts_count(strategy->hosts); h++)
        if (differ(strategy->hosts, h, &found))
            return fail_different(strategy, h, &found);
    return DITTO_OK;
}

/* Agrees on the status with the other hosts. */
static ditto_status agree(ditto_strategy *strategy, ditto_status status)
{
    struct dti_chosen_rows rows[DTI_HOSTS_NOTE_BYTES / sizeof(struct dti_chosen_rows)];
    struct dti_hosts *hosts = strategy->hosts;
    uint32_t count = 0;
    if (status >= 0 && hosts->agrees)
        count = dti_input_chosen_rows(strategy->base.team, &strategy->told_rows, rows,
                                      sizeof rows / sizeof rows[0]);
    status = dti_hosts_end_run(hosts, status, rows, count * sizeof rows[0]);
    if (status < 0 || !hosts->agrees)
        return status;
    ditto_status compared = compare_rows(strategy);
    return compared == DITTO_OK ? status : compared;
}

ditto_status dti_run_begins_on_hosts(ditto_strategy *strategy)
{
    if (strategy->hosts == NULL)
        return DITTO_OK;
    DTI_TRY(dti_cluster_check_usable(strategy->hosts->cluster));
    if (strategy->levels != 0)
        return DITTO_OK;
    ditto_status status = dti_hosts_run_begins(strategy->hosts);
    return status == DITTO_OK || status == DITTO_ERR_LOST ? status : agree(strategy, status);
}

ditto_status dti_run_ends_on_hosts(ditto_strategy *strategy, ditto_status status)
{
    return agree(strategy, dti_hosts_run_ended(strategy->hosts, status));
}
