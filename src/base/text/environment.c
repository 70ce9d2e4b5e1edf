/* src/base/text/environment.c - see environment.h. It uses no other file of the library, because ditto-info
 * is compiled with it: the library does not export internal functions. */
#include "base/text/environment.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const struct dti_variable dti_variables[DTI_NUM_VARIABLES] = {
    { "DITTO_LIBRARY_PATH", "none", "folders in which the Python package looks for the libraries first" },
    { "DITTO_PART", "auto", "which part of the PUs the process takes" },
    { "DITTO_PIN", "default", "whether threads are bound to PUs" },
    { "DITTO_PUS_PER_REPLICA", "1", "the number of PUs of each replica" },
    { "DITTO_SPIN_US", "as DITTO_WAIT says", "microseconds that a waiting thread spins before it sleeps" },
    { "DITTO_TIMEOUT_MS", "600000", "milliseconds that a replica waits for the others, or for input" },
    { "DITTO_TUNING", "measured", "the thresholds by which collectives choose their algorithms" },
    { "DITTO_WAIT", "default", "how threads wait" },
};

/* The beginnings of the names of variables that tests and scripts read (CONTRIBUTING.md). */
static const char *const of_developers[] = { "DITTO_BENCH_", "DITTO_CHECK_", "DITTO_FUZZ_", "DITTO_STRESS_",
                                             "DITTO_TEST_" };

/* Longer names are cut. */
enum { MOST_CHARACTERS = 64 };

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < DTI_NUM_VARIABLES; i++)
        if (strlen(dti_variables[i].name) == length && memcmp(dti_variables[i].name, name, length) == 0)
            return true;
    for (size_t i = 0; i < sizeof of_developers / sizeof of_developers[0]; i++)
        if (strncmp(name, of_developers[i], strlen(of_developers[i])) == 0)
            return true;
    return false;
}

/* Returns how many characters must be inserted, removed or replaced to make one name from the other
 * (Levenshtein's distance). cost[i] is that of the first i characters of `name`. */
static size_t distance(const char *name, size_t length, const char *other)
{
    size_t cost[MOST_CHARACTERS + 1];
    for (size_t i = 0; i <= length; i++)
        cost[i] = i;
    for (; *other != '\0'; other++) {
        size_t diagonal = cost[0]++;
        for (size_t i = 1; i <= length; i++) {
            size_t replaced = diagonal + (name[i - 1] != *other);
            size_t moved = (cost[i] < cost[i - 1] ? cost[i] : cost[i - 1]) + 1;
            diagonal = cost[i];
            cost[i] = replaced < moved ? replaced : moved;
        }
    }
    return cost[length];
}

static const char *nearest_name(const char *name, size_t length)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < DTI_NUM_VARIABLES; i++) {
        size_t d = distance(name, length, dti_variables[i].name);
        nearest = d < least ? dti_variables[i].name : nearest;
        least = d < least ? d : least;
    }
    return nearest;
}

bool dti_unknown_variable(size_t *at, char *sentence, size_t size)
{
    while (environ != NULL && environ[*at] != NULL) {
        const char *name = environ[(*at)++];
        /* A variable with other characters in its name is skipped, because the sentence may be shown in a
         * terminal. */
        size_t length = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
        if (strncmp(name, "DITTO_", 6) != 0 || name[length] != '=' || is_known(name, length))
            continue;
        length = length < MOST_CHARACTERS ? length : MOST_CHARACTERS;
        snprintf(sentence, size, "%.*s is not a variable of ditto; the nearest is %s", (int)length, name,
                 nearest_name(name, length));
        return true;
    }
    return false;
}

/* Source: the manuals of libgomp ("Environment Variables") and of LLVM's OpenMP (KMP_AFFINITY). */
const char *dti_openmp_binding(void)
{
    const char *intel = getenv("KMP_AFFINITY"), *standard = getenv("OMP_PROC_BIND");
    static const char *const types[] = {
        "compact", "scatter", "balanced", "explicit", "logical", "physical"
    };
    for (size_t i = 0; intel != NULL && i < sizeof types / sizeof types[0]; i++)
        if (strcasestr(intel, types[i]) != NULL)
            return "KMP_AFFINITY";
    if (standard != NULL && *standard != '\0')
        return strcasecmp(standard, "false") != 0 ? "OMP_PROC_BIND" : NULL;
    return getenv("GOMP_CPU_AFFINITY") != NULL ? "GOMP_CPU_AFFINITY"
           : getenv("OMP_PLACES") != NULL      ? "OMP_PLACES"
                                               : NULL;
}
