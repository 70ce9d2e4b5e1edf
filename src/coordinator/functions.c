/* src/coordinator/functions.c - the registry of functions with names; see functions.h. */
#include "coordinator/functions.h"
#include "base/errors/status.h"
#include "base/text/text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct registered {
    struct registered *next;
    struct dti_function function;
};

static struct registered *newest; /* under the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t watching = PTHREAD_ONCE_INIT;

/* A fork waits until no other thread is in the registry, because the lock would stay locked in the child. */
static void hold_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void free_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(hold_lock, free_lock, free_lock);
}

static void enter(void)
{
    pthread_once(&watching, watch_forks);
    pthread_mutex_lock(&lock);
}

/* Returns the link that leads to the function of this name, or to NULL. The caller has the lock. */
static struct registered **link_to(const char *name)
{
    struct registered **link = &newest;
    while (*link != NULL && strcmp((*link)->function.name, name) != 0)
        link = &(*link)->next;
    return link;
}

/* The caller has the lock. */
static ditto_status fail_not_found(const char *name)
{
    char names[300] = "";
    struct dti_text text = { names, sizeof names, 0 };
    for (const struct registered *e = newest; e != NULL; e = e->next)
        dti_text_add(&text, "%s\"%s\"", text.length != 0 ? ", " : "", e->function.name);
    return DTI_FAIL(DITTO_ERR_NOT_FOUND,
                    "no function is registered as \"%.100s\" in this process; registered are: %s", name,
                    names[0] != '\0' ? names : "none");
}

ditto_status dti_function_find(const char *name, struct dti_function *out)
{
    enter();
    const struct registered *found = *link_to(name);
    if (found != NULL)
        *out = found->function;
    ditto_status status = found != NULL ? DITTO_OK : fail_not_found(name);
    pthread_mutex_unlock(&lock);
    return status;
}

/* The caller has the lock. */
static ditto_status add(const char *name, ditto_replica_fn call, void *user)
{
    const struct registered *taken = *link_to(name);
    if (taken != NULL && taken->function.call == call && taken->function.user == user)
        return DITTO_OK;
    if (taken != NULL)
        return DTI_FAIL(
            DITTO_ERR_INVALID,
            "another function, or the same one with another user pointer, is registered as \"%s\": use "
            "another name, or call ditto_function_unregister first",
            name);
    struct registered *e = calloc(1, sizeof *e);
    if (e == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to register the function \"%s\"", name);
    e->function.call = call;
    e->function.user = user;
    memcpy(e->function.name, name, strlen(name) + 1); /* its length has been checked */
    e->next = newest;
    newest = e;
    return DITTO_OK;
}

ditto_status dti_function_register(const char *name, ditto_replica_fn call, void *user)
{
    if (name[0] == '\0')
        return DTI_FAIL(DITTO_ERR_INVALID, "name is empty: give the function a name");
    if (strlen(name) > DITTO_MAX_FUNCTION_NAME_BYTES)
        return DTI_FAIL(DITTO_ERR_RANGE, "the name \"%.100s\" has %zu bytes: the most is %d", name,
                        strlen(name), DITTO_MAX_FUNCTION_NAME_BYTES);
    enter();
    ditto_status status = add(name, call, user);
    pthread_mutex_unlock(&lock);
    return status;
}

ditto_status dti_function_unregister(const char *name)
{
    enter();
    struct registered **link = link_to(name), *found = *link;
    if (found != NULL)
        *link = found->next;
    ditto_status status = found != NULL ? DITTO_OK : fail_not_found(name);
    pthread_mutex_unlock(&lock);
    free(found);
    return status;
}
