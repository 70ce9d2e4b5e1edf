/* src/replicas/machine/mask.c - see mask.h. */
#include "replicas/machine/mask.h"

#include <string.h>

#define WORD_BITS (8 * sizeof(unsigned long))

/* The largest number that is parsed. A larger limit could overflow. */
#define MOST_NUMBER 99999999u

void dti_mask_clear(struct dti_mask *mask)
{
    memset(mask, 0, sizeof *mask);
}

void dti_mask_add(struct dti_mask *mask, uint32_t number)
{
    mask->bits[number / WORD_BITS] |= 1ul << number % WORD_BITS;
}

bool dti_mask_has(const struct dti_mask *mask, uint32_t number)
{
    return number < DTI_MAX_PUS && (mask->bits[number / WORD_BITS] >> number % WORD_BITS & 1) != 0;
}

uint32_t dti_mask_count(const struct dti_mask *mask)
{
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof mask->bits / sizeof mask->bits[0]; i++)
        count += (uint32_t)__builtin_popcountl(mask->bits[i]);
    return count;
}

static bool parse_number(const char **at, const char *end, uint32_t *number)
{
    const char *start = *at;
    uint32_t sum = 0;
    for (; *at < end && **at >= '0' && **at <= '9' && sum <= MOST_NUMBER; ++*at)
        sum = sum * 10 + (uint32_t)(**at - '0');
    *number = sum;
    return *at > start && sum <= MOST_NUMBER;
}

bool dti_number_range_parse(const char **at, const char *end, uint32_t *first, uint32_t *last)
{
    if (!parse_number(at, end, first))
        return false;
    *last = *first;
    if (*at == end || **at != '-')
        return true;
    ++*at;
    return parse_number(at, end, last) && *last >= *first;
}

bool dti_mask_parse(const char *text, size_t length, struct dti_mask *mask)
{
    const char *at = text, *end = text + length;
    uint32_t first, last;
    dti_mask_clear(mask);
    for (;; at++) { /* at++ skips the comma */
        if (!dti_number_range_parse(&at, end, &first, &last) || last >= DTI_MAX_PUS)
            return false;
        for (; first <= last; first++)
            dti_mask_add(mask, first);
        if (at == end)
            return true;
        if (*at != ',')
            return false;
    }
}

static void write_run(struct dti_number_list *list)
{
    if (list->first > list->last)
        return;
    dti_text_add(list->text, list->first < list->last ? "%s%u-%u" : "%s%u", list->started ? "," : "",
                 list->first, list->last);
    list->started = true;
}

void dti_number_list_add(struct dti_number_list *list, uint32_t number)
{
    if (list->first <= list->last && number == list->last + 1) {
        list->last = number;
        return;
    }
    write_run(list);
    list->first = list->last = number;
}

void dti_number_list_end(struct dti_number_list *list)
{
    write_run(list);
    list->first = 1;
    list->last = 0;
}

void dti_number_list_fit(struct dti_text *text)
{
    static const char mark[] = ",...";
    if (text->length < text->size || text->size <= sizeof mark)
        return;
    char *at = text->buffer + text->size - sizeof mark;
    while (at > text->buffer && *at != ',')
        at--;
    memcpy(at, mark, sizeof mark);
    text->length = strlen(text->buffer);
}

void dti_mask_write(const struct dti_mask *mask, struct dti_text *text)
{
    struct dti_number_list list = { .text = text, .first = 1 };
    for (uint32_t i = 0; i < DTI_MAX_PUS; i++)
        if (dti_mask_has(mask, i))
            dti_number_list_add(&list, i);
    dti_number_list_end(&list);
}
