/* src/replicas/team/recorder.c - records and sums up trace events. See recorder.h. */
#include "replicas/team/recorder.h"
#include "base/text/text.h"
#include "replicas/team/team_state.h"

#include <stdlib.h>
#include <string.h>

static void free_tracer(struct dti_tracer *tracer)
{
    if (tracer == NULL)
        return;
    free(tracer->event);
    free(tracer);
}

void dti_trace_forget(struct dti_team *team)
{
    for (uint32_t i = 0; i < team->n; i++) {
        free_tracer(team->replica[i].traced);
        team->replica[i].tracer = team->replica[i].traced = NULL;
    }
}

void dti_trace_stop(struct dti_team *team)
{
    for (uint32_t i = 0; i < team->n; i++)
        team->replica[i].tracer = NULL;
}

static struct dti_tracer *make_tracer(size_t events)
{
    struct dti_tracer *tracer = calloc(1, sizeof *tracer);
    if (tracer == NULL)
        return NULL;
    tracer->begin_ns = dti_now_ns();
    tracer->capacity = events;
    tracer->event = events != 0 ? malloc(events * sizeof *tracer->event) : NULL;
    if (events != 0 && tracer->event == NULL) {
        free(tracer);
        return NULL;
    }
    return tracer;
}

ditto_status dti_trace_start(struct dti_team *team, size_t events)
{
    struct dti_tracer **made = calloc(team->n, sizeof(void *));
    uint32_t i = 0;
    while (made != NULL && i < team->n && (made[i] = make_tracer(events)) != NULL)
        i++;
    if (made == NULL || i < team->n) {
        while (i-- > 0)
            free_tracer(made[i]);
        free(made);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to trace %zu events of each of %u replicas", events,
                        team->n);
    }
    dti_trace_forget(team);
    for (i = 0; i < team->n; i++)
        team->replica[i].tracer = team->replica[i].traced = made[i];
    free(made);
    return DITTO_OK;
}

/* -- recording -- */

void dti_tracer_begin(struct dti_tracer *t, enum dti_trace_kind kind, const char *name, const char *label)
{
    if (t->depth < DTI_TRACE_DEPTH) {
        t->open[t->depth].name = name;
        t->open[t->depth].label = label;
        t->open[t->depth].kind = kind;
        t->open[t->depth].begin_ns = dti_now_ns();
        t->open[t->depth].waited_ns = t->open[t->depth].inside_ns = 0;
    }
    /* Events that are nested too deeply are counted, so that each end matches its beginning. */
    t->depth++;
}

void dti_tracer_waited(struct dti_tracer *t, uint64_t since_ns)
{
    if (t->depth != 0 && t->depth <= DTI_TRACE_DEPTH)
        t->open[t->depth - 1].waited_ns += dti_now_ns() - since_ns;
}

/* There are few names, and they are constants. Their addresses distinguish them. Returns NULL if there is no
 * room for another name. */
static struct dti_total *find_total(struct dti_tracer *t, enum dti_trace_kind kind, const char *name,
                                    const char *label)
{
    for (uint32_t i = 0; i < t->totals; i++) {
        struct dti_total *total = &t->total[i];
        if (total->name == name && total->kind == kind && dti_text_same(total->label, label))
            return total;
    }
    if (label != NULL && t->labels == DTI_TRACE_LABELS)
        return find_total(t, kind, name, NULL);
    if (t->totals == DTI_TRACE_NAMES)
        return NULL;
    struct dti_total *total = &t->total[t->totals++];
    *total = (struct dti_total){ .name = name, .kind = kind };
    if (label != NULL) { /* its length has been checked */
        total->label = memcpy(total->label_text, label, strlen(label) + 1);
        t->labels++;
    }
    return total;
}

static void keep(struct dti_tracer *t, const struct dti_event *e)
{
    if (t->events < t->capacity)
        t->event[t->events++] = *e;
    else
        t->dropped++;
}

void dti_tracer_filled(struct dti_tracer *t, uint32_t producer, uint64_t begin_ns, uint64_t end_ns,
                       uint64_t bytes)
{
    if (begin_ns >= t->begin_ns)
        keep(t, &(struct dti_event){ NULL, producer, begin_ns, end_ns, 0, bytes });
}

void dti_tracer_end(struct dti_tracer *t, uint64_t bytes)
{
    if (t->depth == 0) /* the beginning of this event was not recorded */
        return;
    if (--t->depth >= DTI_TRACE_DEPTH)
        return;
    uint32_t d = t->depth;
    uint64_t end_ns = dti_now_ns(), ns = end_ns - t->open[d].begin_ns;
    struct dti_total *total = find_total(t, t->open[d].kind, t->open[d].name, t->open[d].label);
    if (d != 0)
        t->open[d - 1].inside_ns += ns;
    if (total == NULL) {
        t->dropped++;
        return;
    }
    total->count++;
    total->bytes += bytes;
    total->ns += ns;
    total->waited_ns += t->open[d].waited_ns;
    total->own_ns += ns - t->open[d].inside_ns;
    keep(t, &(struct dti_event){ total, 0, t->open[d].begin_ns, end_ns, t->open[d].waited_ns, bytes });
}
