/* tools/survey.h - what ditto-info knows before it prints: the machine, its limits, the placement, what was read back. */
#ifndef SURVEY_H
#define SURVEY_H

#include <ditto.h>

#include <stdbool.h>

struct request {
    bool json, measure, text_only; /* text_only: the placement alone, for ditto_placement_read */
    ditto_topology_options topology;
    ditto_placement_options placement;
    ditto_helpers helpers;
    const char *placement_file; /* NULL: by `placement` */
};

struct warning {
    char what[256];   /* what was found */
    char remedy[256]; /* what to do about it, or why nothing need be done */
};
#define MOST_WARNINGS 20   /* there are fewer kinds */
#define MOST_PUS      8192 /* numbers of usable PUs are below */

struct survey {
    const struct request *request;
    bool live; /* this machine, not a recorded or made-up one */
    ditto_topology *topology;
    ditto_topology_counts counts;
    ditto_limits limits; /* live */
    ditto_placement *placement;
    uint32_t *first,
        *replica_on;          /* PU number p has replicas replica_on[first[p]] .. [first[p + 1]), ascending */
    ditto_strategy *strategy; /* live: where threads and pages were read back */
    struct warning warning[MOST_WARNINGS];
    uint32_t warnings;
};

/* Ends the program with the last error when a call failed. */
void check(ditto_status status);

void survey_make(struct survey *survey, const struct request *request);
void survey_free(struct survey *survey);

const char *binding_name(ditto_binding binding);
const char *node_kind_name(ditto_node_kind kind);
const char *policy_name(ditto_memory_policy policy);
const char *huge_pages_name(ditto_huge_pages pages);

void print_text(const struct survey *survey);
void print_json(const struct survey *survey);

#endif
