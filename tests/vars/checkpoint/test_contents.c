/* tests/vars/checkpoint/test_contents.c - checks which names can be saved in one checkpoint. */
#include "support/support.h"

#include "vars/checkpoint/files/contents.h"

enum { NAMES = 5, LENGTH = 5 };

/* Makes a random name of "/" and of characters that come before and after it in the order of bytes. It is so
 * short that names are often equal, or one is in the folder of another. */
static void make_name(uint64_t *random, char name[LENGTH + 1])
{
    static const char letters[] = "!-/0a/";
    size_t length = 1 + test_random(random) % LENGTH;
    for (size_t i = 0; i < length; i++) {
        bool may_be_slash = i > 0 && i + 1 < length && name[i - 1] != '/';
        do
            name[i] = letters[test_random(random) % (sizeof letters - 1)];
        while (name[i] == '/' && !may_be_slash);
    }
    name[length] = '\0';
}

static bool can_be_beside(const char *a, const char *b)
{
    size_t length = strlen(a);
    return strcmp(a, b) != 0 && !(strncmp(a, b, length) == 0 && b[length] == '/');
}

static void names_are_refused_exactly_if_two_are_equal_or_one_is_in_the_folder_of_another(void **state)
{
    uint64_t random = test_seed(15);
    int accepted = 0, refused = 0;
    for (int trial = 0; trial < test_trials(200000); trial++) {
        char name[NAMES][LENGTH + 1];
        struct dti_contents c = { .step = 0 };
        bool good = true;
        for (int i = 0; i < NAMES; i++) {
            make_name(&random, name[i]);
            assert_non_null(dti_contents_add(&c, name[i]));
        }
        for (int i = 0; i < NAMES; i++)
            for (int k = 0; k < NAMES; k++)
                good &= i == k || can_be_beside(name[i], name[k]);
        ditto_status status = dti_contents_check(&c);
        if (status != (good ? DITTO_OK : DITTO_ERR_INVALID))
            fail_msg("%s %s %s %s %s: %s", name[0], name[1], name[2], name[3], name[4],
                     ditto_status_name(status));
        *(good ? &accepted : &refused) += 1;
        dti_contents_free(&c);
    }
    assert_true(accepted > 1000 && refused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_refused_exactly_if_two_are_equal_or_one_is_in_the_folder_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
