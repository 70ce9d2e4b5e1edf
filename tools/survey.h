/* tools/survey.h - the data that ditto-info collects before it prints: the machine, the placement, the
 * warnings, and on this machine the limits of the process and a strategy whose threads and pages are read
 * back. */
#ifndef SURVEY_H
#define SURVEY_H

#include <ditto.h>

#include <stdbool.h>

struct request {
    bool json, measure;
    bool text_only; /* print only the placement, for ditto_placement_read */
    ditto_topology_options topology;
    ditto_placement_options placement;
    ditto_switch helpers;
    const char *placement_file; /* or NULL, if `placement` is used */
};

struct warning {
    char what[256];   /* the problem */
    char remedy[256]; /* what to do about it, or why nothing has to be done */
};
#define MOST_WARNINGS 20   /* there are fewer kinds of warnings */
#define MOST_PUS      8192 /* more than the largest number of a usable PU */

struct survey {
    const struct request *request;
    bool live; /* this machine, not a recorded or synthetic one */
    ditto_topology *topology;
    ditto_topology_counts counts;
    ditto_limits limits; /* only if live */
    ditto_placement *placement;

    /* The replicas on PU p are replica_on[first[p]] to replica_on[first[p + 1] - 1], in ascending order. */
    uint32_t *first;
    uint32_t *replica_on;
    ditto_strategy *strategy; /* only if live; its threads and pages are read back */
    struct warning warning[MOST_WARNINGS];
    uint32_t warnings;
};

/* Sorts numbers, and writes them, for example "0-3,8". A long list ends in ",...". Returns the length. At
 * least 32 bytes of text are needed. */
size_t name_numbers(uint32_t *number, uint32_t count, char *text, size_t size);

/* Finds the usable PUs of the kinds of cores, with the fastest first. Returns the number of kinds, and writes
 * the PUs, for example "4-7; 0-3". */
uint32_t name_kinds(const struct survey *survey, char *text, size_t size);

/* Ends the program with the last error if the status is an error. */
void check(ditto_status status);

void survey_make(struct survey *survey, const struct request *request);
void survey_free(struct survey *survey);

const char *binding_name(ditto_binding binding);
const char *node_kind_name(ditto_node_kind kind);
const char *policy_name(ditto_numa_policy policy);
const char *huge_pages_name(ditto_huge_pages pages);

void print_text(const struct survey *survey);
void print_json(const struct survey *survey);

#endif
