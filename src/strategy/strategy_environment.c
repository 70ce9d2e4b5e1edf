/* src/strategy/strategy_environment.c - reads options of a strategy from the environment. */
#include "strategy/strategy.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

ditto_status dti_environment_number(const char *name, int64_t least, int64_t most, const char *what,
                                    int64_t *number)
{
    const char *text = getenv(name);
    int64_t value;
    if (text == NULL)
        return DITTO_OK;
    if (!dti_parse_i64(text, strlen(text), &value) || value < least || value > most)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the environment variable %s is \"%s\": it must be %s, %lld to %lld", name, text,
                        what, (long long)least, (long long)most);
    *number = value;
    return DITTO_OK;
}

ditto_status dti_environment_word(const char *name, const char *const *words, int num_words, int *index)
{
    const char *text = getenv(name);
    char list[64];
    struct dti_text known = { list, sizeof list, 0 };
    if (text == NULL)
        return DITTO_OK;
    for (int i = 0; i < num_words; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *index = i;
            return DITTO_OK;
        }
        dti_text_add(&known, "%s%s", i == 0 ? "" : i + 1 < num_words ? ", " : " or ", words[i]);
    }
    return DTI_FAIL(DITTO_ERR_INVALID, "the environment variable %s is \"%s\": it must be %s", name, text,
                    list);
}
