/* src/replicas/machine/mask.h - sets of PUs and of NUMA nodes, and their text form "0-3,8". Pure. */
#ifndef DTI_MASK_H
#define DTI_MASK_H

#include "base/base.h"

#define DTI_MAX_PUS   8192 /* operating-system numbers below this */
#define DTI_MAX_NODES 1024 /* the same for NUMA nodes, as the kernel is built at most */

/* By value, so that pinning around a run allocates nothing. */
struct dti_mask {
    unsigned long bits[DTI_MAX_PUS / (8 * sizeof(unsigned long))];
};
void dti_mask_clear(struct dti_mask *mask);
void dti_mask_add(struct dti_mask *mask, uint32_t number); /* number < DTI_MAX_PUS */
bool dti_mask_has(const struct dti_mask *mask, uint32_t number);
uint32_t dti_mask_count(const struct dti_mask *mask);

/* A list of numbers and ranges, as cpusets, taskset and numactl write it: "0-3,8". False: anything else, an empty list
 * included, or a number of DTI_MAX_PUS or more. */
bool dti_mask_parse(const char *text, size_t length, struct dti_mask *mask);

/* Reads one item, a number or a range, at *at and moves *at behind it; false: there is none. */
bool dti_number_range_parse(const char **at, const char *end, uint32_t *first, uint32_t *last);
/* Appends number `number` to a list under construction that ends with the run [*first, *last]: runs are written when they
 * end. Start with *first > *last; finish with dti_number_list_end. */
struct dti_number_list {
    struct dti_text *text;
    uint32_t first, last; /* the run that is not yet written; first > last: none */
    bool started;
};
void dti_number_list_add(struct dti_number_list *list, uint32_t number);
void dti_number_list_end(struct dti_number_list *list);
/* Finishes a list in a buffer of its own that may be too small: then it ends in ",..." instead of in half a number. */
void dti_number_list_fit(struct dti_text *text);
/* The whole set as a list. */
void dti_mask_write(const struct dti_mask *mask, struct dti_text *text);

#endif
