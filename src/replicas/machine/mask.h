/* src/replicas/machine/mask.h - sets of PUs and of NUMA nodes, and their text form "0-3,8". Pure. */
#ifndef DTI_MASK_H
#define DTI_MASK_H

#include "base/text/text.h"

/* Operating-system numbers of PUs are below this. */
#define DTI_MAX_PUS 8192

/* Operating-system numbers of NUMA nodes are below this. It is the largest value for which a kernel can be
 * built. */
#define DTI_MAX_NODES 1024

/* A set that is used by value, so that binding a thread for a run allocates nothing. */
struct dti_mask {
    unsigned long bits[DTI_MAX_PUS / (8 * sizeof(unsigned long))];
};
void dti_mask_clear(struct dti_mask *mask);

/* `number` must be below DTI_MAX_PUS. */
void dti_mask_add(struct dti_mask *mask, uint32_t number);
bool dti_mask_has(const struct dti_mask *mask, uint32_t number);
uint32_t dti_mask_count(const struct dti_mask *mask);

/* Parses a list of numbers and ranges such as "0-3,8", which is the form of cpusets, taskset and numactl.
 * Returns false for any other text, for an empty list, and for a number of DTI_MAX_PUS or more. */
bool dti_mask_parse(const char *text, size_t length, struct dti_mask *mask);

/* Parses a number or a range at *at, and moves *at to the first character after it. Returns false if there is
 * none. */
bool dti_number_range_parse(const char **at, const char *end, uint32_t *first, uint32_t *last);

/* A list under construction. A range is written when it is known to be complete. Start with first > last, and
 * finish with dti_number_list_end. */
struct dti_number_list {
    struct dti_text *text;

    /* The range that is not written yet. There is none if first > last. */
    uint32_t first, last;

    /* True when the list has an item. */
    bool started;
};
void dti_number_list_add(struct dti_number_list *list, uint32_t number);
void dti_number_list_end(struct dti_number_list *list);

/* Finishes a list whose buffer, which holds nothing else, may be too small. The list then ends in ",..." and
 * not in a part of a number. */
void dti_number_list_fit(struct dti_text *text);

/* Writes the whole set as a list. */
void dti_mask_write(const struct dti_mask *mask, struct dti_text *text);

#endif
