/* src/strategy/runs/run_on_hosts.c - begins and ends runs over several hosts. See run_on_hosts.h. */
#include "strategy/runs/run_on_hosts.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "input/input.h"
#include "sync/hosts/hosts.h"

/* Returns DIVERGED on all hosts if two of them have chosen different rows of the same input. Their notes say
 * what they have chosen. */
static ditto_status compare_rows(ditto_strategy *strategy)
{
    const struct dti_hosts *hosts = strategy->hosts;
    for (uint32_t h = 1; h < dti_hosts_count(hosts); h++) {
        size_t below_bytes, bytes;
        const struct dti_chosen_rows *below = dti_hosts_note(hosts, h - 1, &below_bytes),
                                     *rows = dti_hosts_note(hosts, h, &bytes), *found;
        found = dti_chosen_rows_differ(below, (uint32_t)(below_bytes / sizeof *below), rows,
                                       (uint32_t)(bytes / sizeof *rows));
        if (found == NULL)
            continue;
        char names[400] = "", dataset[200] = "";
        struct dti_text text = { names, sizeof names, 0 };
        dti_describe_host(hosts->cluster, h - 1, &text);
        dti_text_add(&text, " and ");
        dti_describe_host(hosts->cluster, h, &text);
        dti_input_describe_chosen_rows(strategy->base.team, found,
                                       &(struct dti_text){ dataset, sizeof dataset, 0 });
        DTI_FAIL(DITTO_ERR_DIVERGED,
                 "%s have chosen different rows of %s in the first %llu steps: its files, generators and "
                 "functions must give the same rows on both",
                 names, dataset, (unsigned long long)found->steps);
        return dti_hosts_close(hosts->cluster, hosts->timeout_ms);
    }
    return DITTO_OK;
}

/* Agrees on the status with the other hosts. */
static ditto_status agree(ditto_strategy *strategy, ditto_status status)
{
    struct dti_chosen_rows rows[DTI_HOSTS_NOTE_BYTES / sizeof(struct dti_chosen_rows)];
    struct dti_hosts *hosts = strategy->hosts;
    uint32_t count = 0;
    if (status >= 0 && hosts->agrees)
        count = dti_input_chosen_rows(strategy->base.team, rows, sizeof rows / sizeof rows[0]);
    status = dti_hosts_end_run(hosts, status, rows, count * sizeof rows[0]);
    if (status < 0 || !hosts->agrees)
        return status;
    ditto_status compared = compare_rows(strategy);
    return compared == DITTO_OK ? status : compared;
}

ditto_status dti_run_begins_on_hosts(ditto_strategy *strategy)
{
    ditto_status status = dti_hosts_run_begins(strategy->hosts);
    return status == DITTO_OK || status == DITTO_ERR_LOST ? status : agree(strategy, status);
}

ditto_status dti_run_ends_on_hosts(ditto_strategy *strategy, ditto_status status)
{
    return agree(strategy, dti_hosts_run_ended(strategy->hosts, status));
}
