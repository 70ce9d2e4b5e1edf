/* src/vars/checkpoint/choose.c - see choose.h. */
#include "vars/checkpoint/choose.h"
#include "base/base.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static ditto_status list_all(ditto_strategy *strategy, ditto_variable ***out, size_t *count)
{
    size_t room, there;
    DTI_TRY(ditto_strategy_variables(strategy, NULL, 0, &room));
    ditto_variable **list = malloc((room + 1) * sizeof(ditto_variable *));
    if (list == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to list %zu variables", room);
    ditto_status status = ditto_strategy_variables(strategy, list, room, &there);
    if (status != DITTO_OK) {
        free(list);
        return status;
    }
    *out = list;
    *count = there < room ? there : room;
    return DITTO_OK;
}

static bool has(ditto_variable *const *list, size_t count, const ditto_variable *v)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == v)
            return true;
    return false;
}

ditto_status dti_choose_variables(ditto_strategy *strategy, ditto_variable *const *chosen, size_t chosen_count,
                                  ditto_variable ***out, size_t *count)
{
    ditto_variable **all = NULL;
    size_t there = 0;
    DTI_TRY(dti_own(list_all(strategy, &all, &there)));
    if (chosen == NULL) {
        *out = all;
        *count = there;
        return DITTO_OK;
    }
    ditto_status status = DITTO_OK;
    for (size_t i = 0; status == DITTO_OK && i < chosen_count; i++)
        if (!has(all, there, chosen[i]))
            status = DTI_FAIL(DITTO_ERR_CONTEXT, "variables[%zu] is none of this strategy's", i);
    free(all);
    if (status != DITTO_OK)
        return status;
    *out = malloc((chosen_count + 1) * sizeof(ditto_variable *));
    if (*out == NULL)
        return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to list %zu variables", chosen_count);
    memcpy(*out, chosen, chosen_count * sizeof(ditto_variable *));
    *count = chosen_count;
    return DITTO_OK;
}
