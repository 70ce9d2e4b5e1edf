/* tests/base/test_base.c - the claims of src/base: statuses, messages, options, numbers, sizes, the floating
 * point environment and processor features. */
#include "support/support.h"

#include "base/errors/status.h"
#include "base/numbers/fenv.h"
#include "base/text/text.h"
#include "base/types/bytes.h"
#include "base/types/convert.h"
#include "base/types/types.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>

static void every_status_has_a_name_and_a_sentence(void **state)
{
#define STATUS(name, value, sentence)   name,
#define SENTENCE(name, value, sentence) sentence,
    static const ditto_status statuses[] = { DITTO_STATUS_LIST(STATUS) };
    static const char *const sentences[] = { DITTO_STATUS_LIST(SENTENCE) };
#undef SENTENCE
#undef STATUS
    static const ditto_status none = (ditto_status)-1000;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        const char *name = ditto_status_name(statuses[i]), *sentence = sentences[i];
        assert_int_equal(strncmp(name, "DITTO_", 6), 0);
        assert_true(strlen(sentence) > 0);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(name, ditto_status_name(statuses[k]));
            assert_string_not_equal(sentence, sentences[k]);
        }
    }
    assert_string_equal(ditto_status_name(DITTO_ERR_RANGE), "DITTO_ERR_RANGE");
    assert_string_equal(ditto_status_name(none), "unknown status");
    assert_string_equal(ditto_version(), "0.1.0");
}

static void a_failure_is_recorded_with_errno_kept(void **state)
{
    errno = 77;
    assert_int_equal(DTI_FAIL_ERRNO(DITTO_ERR_IO, ENOENT, "file %s", "x"), DITTO_ERR_IO);
    assert_int_equal(errno, 77);
    assert_int_equal(ditto_last_error()->system_errno, ENOENT);
    assert_int_equal(ditto_last_error()->replica, -1);
    assert_string_equal(ditto_last_error()->message, "file x: No such file or directory");
}

static void text_can_be_put_before_the_last_message(void **state)
{
    DTI_FAIL(DITTO_ERR_RANGE, "axis 3 of 2");
    DTI_FAIL(DITTO_ERR_RANGE, "in step %d of the loop that trains: %s", 7, ditto_last_error()->message);
    assert_string_equal(ditto_last_error()->message, "in step 7 of the loop that trains: axis 3 of 2");
}

static void a_long_message_is_cut_not_overrun(void **state)
{
    char text[2000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    DTI_FAIL_ERRNO(DITTO_ERR_IO, ENOENT, "%s", text);
    const char *message = ditto_last_error()->message, *end = "aaa...: No such file or directory";
    assert_in_range(strlen(message), 400, sizeof ditto_last_error()->message - 1);
    assert_string_equal(message + strlen(message) - strlen(end), end);
}

static void text_after_a_long_name_stays(void **state)
{
    char name[600], other[300];
    /* With these lengths the message is cut at every byte of a three-byte character. */
    for (size_t length = 350; length < 600; length++) {
        for (size_t i = 0; i < length; i++)
            name[i] = "\xe2\x82\xac"[i % 3];
        name[length / 3 * 3] = '\0';
        memset(other, 'o', 299);
        other[length % 300] = '\0';
        DTI_FAIL(DITTO_ERR_IO, "%s (%d of %5.2f%%, %zu, %llu, %-3c|%04x) and \"%s\": do this", name, -3,
                 12.345, (size_t)7, 1ull << 40, 'x', 0xau, other);
        const char *message = ditto_last_error()->message;
        assert_non_null(strstr(message, " (-3 of 12.35%, 7, 1099511627776, x  |000a) and \"o"));
        assert_non_null(strstr(message, "\": do this"));
        if (strlen(name) + strlen(other) + 59 > 511)
            assert_non_null(strstr(message, "\xe2\x82\xac... (")); /* no part of a character is left */
    }
}

static void a_message_is_one_line(void **state)
{
    DTI_FAIL(DITTO_ERR_IO, "no file \"%s\"", "a\nb\tc");
    assert_string_equal(ditto_last_error()->message, "no file \"a b c\"");
}

static void a_text_that_does_not_fit_ends_with_a_mark(void **state)
{
    char words[16] = "";
    struct dti_text text = { words, sizeof words, 0 };
    dti_text_add(&text, "%s", "one two three");
    assert_string_equal(words, "one two three");
    dti_text_add(&text, "%s", " four");
    assert_string_equal(words, "one two thre...");
    assert_int_equal(text.length, 18);
}

static void sets_of_numbers_are_written_as_ranges_and_a_count(void **state)
{
    char words[100] = "";
    struct dti_text text = { words, sizeof words, 0 };
    bool set[100] = { false };
    set[1] = set[4] = set[5] = set[6] = true;
    dti_text_add_set(&text, set, 100, 0);
    assert_string_equal(words, "1, 4-6");
    set[2] = true;
    text.length = 0;
    dti_text_add_set(&text, set, 100, 0);
    assert_string_equal(words, "1, 2, 4-6");
    for (int i = 10; i < 100; i += 2)
        set[i] = true;
    text.length = 0;
    dti_text_add_set(&text, set, 100, 0);
    assert_string_equal(words, "1, 2, 4-6, 10, 12, 14, 16, 18 and 40 more");
}

static void *fail_elsewhere(void *unused)
{
    DTI_FAIL(DITTO_ERR_BUSY, "elsewhere");
    return NULL;
}

static void each_thread_has_its_own_record(void **state)
{
    pthread_t thread;
    DTI_FAIL(DITTO_ERR_RANGE, "here");
    pthread_create(&thread, NULL, fail_elsewhere, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(ditto_last_error()->status, DITTO_ERR_RANGE);
}

struct new_options {
    size_t struct_size;
    uint32_t known;
    uint32_t newer;
};
struct old_options {
    size_t struct_size;
    uint32_t known;
    uint32_t padding;
};

static void a_shorter_option_struct_is_padded_with_zeros(void **state)
{
    struct new_options known = { 1, 2, 3 };
    uint64_t given[1] = { sizeof given };
    assert_ok(dti_options_copy(&known, sizeof known, given, "options"));
    assert_int_equal(known.struct_size, sizeof known);
    assert_int_equal(known.known, 0);
    assert_int_equal(known.newer, 0);
}

static void an_unknown_tail_must_be_zero(void **state)
{
    struct {
        struct old_options known;
        uint32_t tail[4];
    } given = { .known = { .struct_size = sizeof given, .known = 5 } };
    struct old_options known;
    assert_ok(dti_options_copy(&known, sizeof known, &given, "options"));
    assert_int_equal(known.known, 5);
    given.tail[3] = 1;
    assert_status(dti_options_copy(&known, sizeof known, &given, "options"), DITTO_ERR_UNSUPPORTED);
    assert_message("byte 28 is set");
}

static void a_forgotten_size_is_refused(void **state)
{
    struct old_options given = { 0 }, known;
    assert_status(dti_options_copy(&known, sizeof known, &given, "options"), DITTO_ERR_INVALID);
    assert_message("INIT macro");
}

static void a_result_is_cut_or_padded_to_the_struct_of_the_caller(void **state)
{
    struct new_options found = { 1, 2, 3 }, longer[2], zero = { 0, 0, 0 };
    struct old_options shorter = { .struct_size = offsetof(struct old_options, padding), .padding = 7 };
    dti_result_store(&shorter, &found, sizeof found);
    assert_int_equal(shorter.struct_size, offsetof(struct old_options, padding));
    assert_int_equal(shorter.known, 2);
    assert_int_equal(shorter.padding, 7);
    memset(longer, 0xff, sizeof longer);
    longer[0].struct_size = sizeof longer;
    dti_result_store(longer, &found, sizeof found);
    assert_int_equal(longer[0].struct_size, sizeof longer);
    assert_true(longer[0].known == 2 && longer[0].newer == 3);
    assert_memory_equal(&longer[1], &zero, sizeof zero);
    ditto_limits limits = { .struct_size = 0 };
    assert_status(dti_result_check(&limits, "ditto_limits"), DITTO_ERR_INVALID);
    assert_message("ditto_limits.struct_size is 0: start from its INIT macro");
    assert_status(dti_result_check(NULL, "ditto_limits"), DITTO_ERR_INVALID);
    assert_message("out is NULL");
}

static void sizes_that_overflow_are_found(void **state)
{
    ditto_tensor t = { .dtype = DITTO_F64, .rank = 2, .shape = { SIZE_MAX / 2, 3 } };
    size_t bytes;
    assert_int_equal(dti_tensor_count(&t), 0);
    t.shape[1] = 0;
    assert_int_equal(dti_tensor_count(&t), 0);
    t = (ditto_tensor){ .dtype = DITTO_F64, .rank = 2, .shape = { 3, 5 } };
    assert_int_equal(ditto_tensor_bytes(&t), 120);
    assert_status(dti_buffer_bytes(SIZE_MAX / 4, DITTO_F64, &bytes), DITTO_ERR_RANGE);
    assert_status(dti_buffer_bytes(1, (ditto_dtype)99, &bytes), DITTO_ERR_INVALID);
    assert_status(dti_buffer_check((void *)3, 8, DITTO_F32, "src"), DITTO_ERR_INVALID);
    assert_message("not aligned");
    assert_ok(dti_buffer_check(NULL, 0, DITTO_F32, "src"));
}

/* Makes and sets a German locale, if the machine has the program and the sources for it. */
static bool make_comma_locale(void)
{
    char folder[SCRATCH_NAME], command[256];
    if (mkdtemp(scratch_name(folder, "locale")) == NULL)
        return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/out 2>&1", folder,
             folder);
    int made = system(command);
    setenv("LOCPATH", folder, 1);
    bool set = made == 0 && setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && set;
}

/* Sets a locale in which strtod would read "1,5" as a number. Returns false if there is none. */
static bool set_comma_locale(void)
{
    static const char *const languages[] = { "de_DE", "fr_FR", "es_ES", "it_IT", "nl_NL",
                                             "pl_PL", "pt_BR", "ru_RU", "sv_SE", "tr_TR" };
    char name[32];
    for (size_t i = 0; i < 2 * sizeof languages / sizeof languages[0]; i++) {
        snprintf(name, sizeof name, "%s%s", languages[i / 2], i % 2 ? "" : ".UTF-8");
        if (setlocale(LC_ALL, name) != NULL && strcmp(localeconv()->decimal_point, ",") == 0)
            return true;
    }
    return make_comma_locale();
}

static void read_fractions(void)
{
    double value;
    assert_true(dti_parse_f64("1.5", 3, &value));
    assert_true(value == 1.5);
    assert_false(dti_parse_f64("1,5", 3, &value));
}

static void numbers_are_read_without_the_locale(void **state)
{
    read_fractions();
    if (!set_comma_locale()) {
        print_message("  no locale with a decimal comma is installed, and none can be made\n");
        skip();
    }
    assert_string_equal(localeconv()->decimal_point, ",");
    read_fractions();
    setlocale(LC_ALL, "C");
}

static void only_complete_numbers_are_accepted(void **state)
{
    static const char *const bad[] = {
        "",     "-",   "1x",  " 1",    "1 ",     "abc", "--1", "1e",  "0x",
        "0x10", "nan", "inf", "1e400", "-1e400", ".",   "+",   "1e+", "nan(1)"
    };
    double real;
    int64_t whole;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (dti_parse_f64(bad[i], strlen(bad[i]), &real))
            fail_msg("\"%s\" passed as a number", bad[i]);
    assert_true(dti_parse_f64("-0", 2, &real) && real == 0 && __builtin_signbit(real));
    assert_true(dti_parse_f64("-12345678901234567890", 21, &real) && real == -12345678901234567890.0);
    assert_true(dti_parse_i64("-9223372036854775808", 20, &whole) && whole == INT64_MIN);
    assert_false(dti_parse_i64("9223372036854775808", 19, &whole));
    assert_false(dti_parse_i64("1.0", 3, &whole));
    assert_true(dti_parse_i64("+12", 3, &whole) && whole == 12);
    assert_true(dti_parse_f64("+1.5e-3", 7, &real) && real == 1.5e-3);
    assert_true(dti_parse_f64(".5", 2, &real) && real == 0.5);
    char zeros[100] = { 0 }; /* a number of many digits */
    memset(zeros, '0', 90);
    zeros[89] = '7';
    assert_true(dti_parse_f64(zeros, 90, &real) && real == 7);
    assert_true(dti_parse_i64(zeros, 90, &whole) && whole == 7);
}

static void the_length_of_a_text_includes_the_part_that_does_not_fit(void **state)
{
    char buffer[8];
    struct dti_text text = { buffer, sizeof buffer, 0 };
    dti_text_add(&text, "%s", "12345");
    dti_text_add(&text, "%s", "67890");
    assert_string_equal(buffer, "1234...");
    assert_int_equal(text.length, 10);
}

static void the_floating_point_environment_is_set_and_restored(void **state)
{
#if defined(__x86_64__)
    uint32_t before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040u); /* flush to zero, denormals are zero */
    struct dti_fenv saved = dti_fenv_enter();
    assert_int_equal(__builtin_ia32_stmxcsr() & ~DTI_MXCSR_FLAGS, DTI_MXCSR_DEFAULT);
    dti_fenv_leave(saved);
    assert_int_equal(__builtin_ia32_stmxcsr() & 0x8040u, 0x8040u);
    __builtin_ia32_ldmxcsr(before);
#endif
}

static void processor_features_are_those_that_the_kernel_reports(void **state)
{
    char line[8192];
    bool has_flags = false;
    struct dti_cpu cpu = dti_cpu_features();
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file != NULL && !has_flags && fgets(line, sizeof line, file) != NULL)
        has_flags = strncmp(line, "flags", 5) == 0;
    if (file != NULL)
        fclose(file);
    assert_int_equal(cpu.avx2, has_flags && strstr(line, " avx2 ") != NULL);
    bool avx512 = true;
    static const char *const parts[] = { " avx512f ", " avx512bw ", " avx512dq ", " avx512vl " };
    for (int i = 0; i < 4; i++)
        avx512 = avx512 && has_flags && strstr(line, parts[i]) != NULL;
    assert_int_equal(cpu.avx512, avx512);
}

static void a_number_outside_an_integer_dtype_becomes_its_end(void **state)
{
    static const struct row {
        ditto_dtype dtype;
        double value;
        int64_t expected; /* as the bits of the element */
    } rows[] = {
        { DITTO_I8, 1e3, INT8_MAX },
        { DITTO_I8, -1e3, 0x80 },
        { DITTO_I8, -2.5, 0xfe },
        { DITTO_U8, -1, 0 },
        { DITTO_U8, 255.9, 255 },
        { DITTO_I64, 0x1p63, INT64_MAX },
        { DITTO_I64, -0x1p63, INT64_MIN },
        { DITTO_U64, 0x1p64, -1 },
        { DITTO_U64, 0x1p63, INT64_MIN },
        { DITTO_I32, NAN, 0 },
        { DITTO_BOOL, 7, 1 },
        { DITTO_BOOL, -7, 0 },
        { DITTO_F16, 1, 0x3c00 },
        { DITTO_BF16, -INFINITY, 0xff80 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t element = 0;
        dti_number_store(rows[i].dtype, &element, rows[i].value);
        assert_int_equal(element, rows[i].expected);
    }
}

static void a_state_without_memory_says_how_many_bytes_were_wanted(void **state)
{
    struct dti_bytes bytes = { 0 };
    dti_bytes_put(&bytes, "", SIZE_MAX); /* nothing is read, because there is no memory for it */
    assert_status(dti_bytes_status(&bytes), DITTO_ERR_NO_MEMORY);
    assert_message("at least 18446744073709551615 bytes");
    dti_bytes_free(&bytes);
    dti_bytes_put(&bytes, "abc", 3);
    dti_bytes_put(&bytes, "", SIZE_MAX - 10);
    dti_bytes_put(&bytes, "d", 1); /* does nothing */
    assert_int_equal(bytes.length, 3);
    assert_status(dti_bytes_status(&bytes), DITTO_ERR_NO_MEMORY);
    assert_message("at least 18446744073709551608 bytes");
    dti_bytes_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_a_sentence),
        cmocka_unit_test(a_failure_is_recorded_with_errno_kept),
        cmocka_unit_test(text_can_be_put_before_the_last_message),
        cmocka_unit_test(a_long_message_is_cut_not_overrun),
        cmocka_unit_test(text_after_a_long_name_stays),
        cmocka_unit_test(a_message_is_one_line),
        cmocka_unit_test(a_text_that_does_not_fit_ends_with_a_mark),
        cmocka_unit_test(sets_of_numbers_are_written_as_ranges_and_a_count),
        cmocka_unit_test(each_thread_has_its_own_record),
        cmocka_unit_test(a_shorter_option_struct_is_padded_with_zeros),
        cmocka_unit_test(an_unknown_tail_must_be_zero),
        cmocka_unit_test(a_forgotten_size_is_refused),
        cmocka_unit_test(a_result_is_cut_or_padded_to_the_struct_of_the_caller),
        cmocka_unit_test(sizes_that_overflow_are_found),
        cmocka_unit_test(numbers_are_read_without_the_locale),
        cmocka_unit_test(only_complete_numbers_are_accepted),
        cmocka_unit_test(the_length_of_a_text_includes_the_part_that_does_not_fit),
        cmocka_unit_test(processor_features_are_those_that_the_kernel_reports),
        cmocka_unit_test(the_floating_point_environment_is_set_and_restored),
        cmocka_unit_test(a_number_outside_an_integer_dtype_becomes_its_end),
        cmocka_unit_test(a_state_without_memory_says_how_many_bytes_were_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
