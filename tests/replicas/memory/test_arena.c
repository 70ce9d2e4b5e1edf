/* tests/replicas/memory/test_arena.c - the claims of src/replicas/memory/arena.h. */
#include "support/support.h"

#include "replicas/machine/affinity.h"
#include "replicas/memory/arena.h"

static void blocks_are_aligned_writable_and_do_not_overlap(void **state)
{
    struct dti_arena *arena;
    void *block[64];
    assert_ok(dti_arena_create(0, DTI_NO_PU, false, &arena));
    for (size_t i = 0; i < 64; i++) {
        size_t alignment = (size_t)1 << i % 13, bytes = i * i * 37;
        assert_ok(dti_arena_alloc(arena, bytes, alignment, &block[i]));
        assert_int_equal((uintptr_t)block[i] % alignment, 0);
        memset(block[i], (int)i, bytes);
    }
    for (size_t i = 0; i < 64; i++)
        for (size_t k = 0; k < i * i * 37; k++)
            assert_int_equal(((unsigned char *)block[i])[k], i);
    for (size_t i = 0; i < 64; i++)
        if (i % 2 == 0)
            dti_arena_free(arena, block[i]);
        else
            dti_arena_free_remote(arena, block[i]);
    dti_arena_destroy(arena);
}

static void freed_memory_is_used_again(void **state)
{
    struct dti_arena *arena;
    assert_ok(dti_arena_create(0, DTI_NO_PU, false, &arena));
    for (int i = 0; i < 2000; i++) {
        void *memory;
        assert_ok(dti_arena_alloc(arena, (size_t)1 << 20, 0, &memory));
        memset(memory, 1, (size_t)1 << 20);
        dti_arena_free(arena, memory);
    }
    assert_true(dti_arena_inspect(arena).mapped_bytes < (uint64_t)64 << 20);
    dti_arena_destroy(arena);
}

static void reserved_memory_uses_pages_only_when_it_is_touched(void **state)
{
    struct dti_arena *arena;
    void *memory;
    assert_ok(dti_arena_create(0, DTI_NO_PU, false, &arena));
    assert_ok(dti_arena_alloc(arena, (size_t)1 << 30, 0, &memory));
    struct dti_arena_report report = dti_arena_inspect(arena);
    assert_true(report.mapped_bytes >= (uint64_t)1 << 30);
    /* With first touch, the arena itself touches all pages of its ranges. */
    if (dti_arena_binding(arena) != DITTO_BINDING_FIRST_TOUCH)
        assert_true(report.resident_pages < 4096);
    dti_arena_destroy(arena);
}

static void a_request_beyond_memory_is_refused(void **state)
{
    struct dti_arena *arena;
    void *memory = &arena;
    assert_ok(dti_arena_create(0, DTI_NO_PU, false, &arena));
    assert_status(dti_arena_alloc(arena, (size_t)1 << 62, 0, &memory), DITTO_ERR_NO_MEMORY);
    assert_status(dti_arena_alloc(arena, SIZE_MAX, 0, &memory), DITTO_ERR_NO_MEMORY);
    assert_ptr_equal(memory, &arena); /* outputs are set only on success */
    dti_arena_destroy(arena);
}

static void creating_and_destroying_arenas_does_not_leak(void **state)
{
    struct dti_arena *arena;
    long mappings = 0, resident = 0;
    for (int i = 0; i < 500; i++) {
        void *memory;
        assert_ok(dti_arena_create(0, DTI_NO_PU, false, &arena));
        assert_ok(dti_arena_alloc(arena, 100000, 0, &memory));
        dti_arena_destroy(arena);
        if (i == 100) {
            mappings = count_mappings();
            resident = resident_kib();
        }
    }
    assert_true(count_mappings() <= mappings + 4);
    assert_true(resident_kib() <= resident + 8192); /* the records of a sanitizer grow a little */
}

/* jemalloc numbers arenas with 12 bits, and keeps two of them for itself. */
static void the_message_of_the_arena_that_is_too_many_names_the_limit(void **state)
{
    enum { MOST = 4093 };
    static struct dti_arena *arena[MOST + 1];
    size_t count = 0;
    while (count <= MOST && dti_arena_create(0, DTI_NO_PU, false, &arena[count]) == DITTO_OK)
        count++;
    assert_int_equal(count, MOST);
    assert_int_equal(ditto_last_error()->status, DITTO_ERR_NO_MEMORY);
    assert_message("4093 replicas and threads");
    dti_arena_destroy(arena[--count]);
    assert_ok(dti_arena_create(0, DTI_NO_PU, false, &arena[count++]));
    while (count > 0)
        dti_arena_destroy(arena[--count]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_writable_and_do_not_overlap),
        cmocka_unit_test(freed_memory_is_used_again),
        cmocka_unit_test(reserved_memory_uses_pages_only_when_it_is_touched),
        cmocka_unit_test(a_request_beyond_memory_is_refused),
        cmocka_unit_test(creating_and_destroying_arenas_does_not_leak),
        cmocka_unit_test(the_message_of_the_arena_that_is_too_many_names_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
