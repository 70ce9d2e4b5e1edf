/* src/coordinator/functions.c - the registry of functions with names; see functions.h. */
#include "coordinator/functions.h"
#include "base/errors/status.h"
#include "base/text/text.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The newest entry. Entries are only ever added, under the lock, so readers need no lock. */
static _Atomic(struct dti_function *) newest;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct dti_function *newest_entry(void)
{
    /* acquire: pairs with the release in add, so that the entry is complete. */
    return atomic_load_explicit(&newest, memory_order_acquire);
}

static bool is_registered(const struct dti_function *f)
{
    /* relaxed: the flag guards no other data. */
    return atomic_load_explicit(&f->is_registered, memory_order_relaxed);
}

static struct dti_function *find(const char *name)
{
    struct dti_function *f = newest_entry();
    while (f != NULL && !(is_registered(f) && strcmp(f->name, name) == 0))
        f = f->next;
    return f;
}

const struct dti_function *dti_function_find(const char *name)
{
    return find(name);
}

/* The caller has the lock. */
static ditto_status add(const char *name, ditto_replica_fn call, void *user)
{
    struct dti_function *f = newest_entry();
    /* An entry that was unregistered is used again. Otherwise a program that registers and unregisters the
     * same function many times would need more and more memory. */
    while (f != NULL && !(f->call == call && f->user == user && strcmp(f->name, name) == 0))
        f = f->next;
    if (f != NULL) {
        atomic_store_explicit(&f->is_registered, true, memory_order_relaxed);
        return DITTO_OK;
    }
    f = calloc(1, sizeof *f);
    if (f == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to register the function \"%s\"", name);
    f->call = call;
    f->user = user;
    memcpy(f->name, name, strlen(name) + 1); /* its length has been checked */
    atomic_init(&f->is_registered, true);
    f->next = newest_entry();
    atomic_store_explicit(&newest, f, memory_order_release);
    return DITTO_OK;
}

static ditto_status add_unless_taken(const char *name, ditto_replica_fn call, void *user)
{
    const struct dti_function *taken = find(name);
    if (taken == NULL)
        return add(name, call, user);
    if (taken->call == call && taken->user == user)
        return DITTO_OK;
    return DTI_FAIL(
        DITTO_ERR_INVALID,
        "another function, or the same one with another user pointer, is registered as \"%s\": use "
        "another name, or call ditto_function_unregister first",
        name);
}

ditto_status dti_function_register(const char *name, ditto_replica_fn call, void *user)
{
    if (name[0] == '\0')
        return DTI_FAIL(DITTO_ERR_INVALID, "name is empty: give the function a name");
    if (strlen(name) > DITTO_MAX_FUNCTION_NAME_BYTES)
        return DTI_FAIL(DITTO_ERR_RANGE, "the name \"%.100s\" has %zu bytes: the most is %d", name,
                        strlen(name), DITTO_MAX_FUNCTION_NAME_BYTES);
    pthread_mutex_lock(&lock);
    ditto_status status = add_unless_taken(name, call, user);
    pthread_mutex_unlock(&lock);
    return status;
}

ditto_status dti_function_unregister(const char *name)
{
    pthread_mutex_lock(&lock);
    struct dti_function *f = find(name);
    if (f != NULL)
        atomic_store_explicit(&f->is_registered, false, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return f != NULL ? DITTO_OK : dti_fail_no_function(name);
}

ditto_status dti_fail_no_function(const char *name)
{
    char names[300] = "";
    struct dti_text text = { names, sizeof names, 0 };
    for (const struct dti_function *f = newest_entry(); f != NULL; f = f->next)
        if (is_registered(f))
            dti_text_add(&text, "%s\"%s\"", text.length != 0 ? ", " : "", f->name);
    return DTI_FAIL(DITTO_ERR_NOT_FOUND,
                    "no function is registered as \"%.100s\" in this process; registered are: %s", name,
                    names[0] != '\0' ? names : "none");
}
