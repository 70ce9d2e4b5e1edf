/* tests/input/sources/text/test_csv_values.c - tests the claims of source.h for the values in CSV files:
 * text, missing values, limits of dtypes, rounding and integers. */
#include "input/sources/text/csv_rows.h"

#include <ditto/transform.h>

#include <inttypes.h>
#include <math.h>

/* -- rows -- */

static void text_is_utf8_and_fits(void **state)
{
    static const char *const bad[] = { "\x80",
                                       "\xc0\x80",
                                       "\xc1\xbf",
                                       "\xe0\x9f\xbf",
                                       "\xed\xa0\x80",
                                       "\xf0\x8f\xbf\xbf",
                                       "\xf4\x90\x80\x80",
                                       "\xf5\x80\x80\x80",
                                       "\xff",
                                       "\xc3",
                                       "\xe2\x82",
                                       "\xf0\x9f\x98",
                                       "abcdefgh\xfe",
                                       "12345678\xc3(",
                                       "\xe2(\xa1" };
    static const char *const good[] = {
        "\xc2\x80",     "\xdf\xbf",         "\xe0\xa0\x80",     "\xed\x9f\xbf",     "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "12345678\xc3\xa9", "gr\xc3\xbc\xc3\x9f dich"
    };
    char line[64], expected[64];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(line, sizeof line, "a,%s\n", bad[i]);
        expect_error(&texts, line, strlen(line), 0, ":1: column 2: the text is not UTF-8");
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(line, sizeof line, "%s,\"%s\"\n", good[i], good[i]);
        snprintf(expected, sizeof expected, "%s|%s|\n", good[i], good[i]);
        expect_rows(&texts, line, strlen(line), expected);
    }
    expect_rows(&texts, BYTES("123456789012345678901234,\"12345678901234567890123\"\"\"\n"),
                "123456789012345678901234|12345678901234567890123\"|\n");
    expect_error(&texts, BYTES("1234567890123456789012345,\n"), 0,
                 ":1: column 1: the text has more than 24 bytes");
    expect_error(&texts, BYTES(",\"123456789012345678901234\"\"\"\n"), 0,
                 ":1: column 2: the text has more than 24 bytes");
}

static void missing_values_are_errors_or_the_given_value(void **state)
{
    struct table t = { { { 0, 2, DITTO_F32, 0, DITTO_CSV_MISSING_VALUE, NAN },
                         { 2, 1, DITTO_I16, 0, DITTO_CSV_MISSING_VALUE, -1 },
                         { 3, 1, DITTO_BOOL, 0, DITTO_CSV_MISSING_VALUE, 1 },
                         { 4, 1, DITTO_F64, 0, DITTO_CSV_MISSING_ERROR, 7 } },
                       4,
                       DITTO_CSV_OPTIONS_INIT };
    static const ditto_dtype integers[] = { DITTO_I8, DITTO_I16, DITTO_I32, DITTO_I64,
                                            DITTO_U8, DITTO_U16, DITTO_U32, DITTO_U64 };
    expect_rows(&t, BYTES("1,2,3,0,4\n,,,,4\n \t,\"\", ,\" \",4\n1,,0,false,4"),
                "1|2|3|0|4|\nnan|nan|-1|1|4|\nnan|nan|-1|1|4|\n1|nan|0|0|4|\n");
    expect_rows(&t, BYTES("nan,NA,NaN, NA ,4\n\"nan\",\"\",NA,nan,5\n"),
                "nan|nan|-1|1|4|\nnan|nan|-1|1|5|\n");
    expect_error(&t, BYTES("1,2,3,0,\n"), 0, ":1: column 5: \"\" is not a number of type f64: the option");
    expect_error(&t, BYTES("1,2,3,0,nan\n"), 0,
                 ":1: column 5: \"nan\" is not a number of type f64: the option");
    expect_error(&t, BYTES("1,2,3,0,NA\n"), 0,
                 ":1: column 5: \"NA\" is not a number of type f64: the option");
    /* These are values, and no missing ones. */
    expect_error(&t, BYTES("inf,2,3,0,4\n"), 0, ":1: column 1: \"inf\" is not");
    expect_error(&t, BYTES("1,N/A,3,0,4\n"), 0, ":1: column 2: \"N/A\" is not");
    expect_error(&t, BYTES("1,2,null,0,4\n"), 0, ":1: column 3: \"null\" is not");
    expect_rows(&texts, BYTES("NA,nan\n"), "NA|nan|\n");
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        struct table one = { { { 0, 1, integers[i], 0, DITTO_CSV_MISSING_VALUE, 100 } },
                             1,
                             DITTO_CSV_OPTIONS_INIT };
        expect_rows(&one, BYTES("7\n\"\"\n"), "7|\n100|\n");
        one.component[0].missing = DITTO_CSV_MISSING_DEFAULT;
        expect_error(&one, BYTES("7\n\"\"\n"), 1, ":2: column 1: \"\" is not a number");
    }
    struct table wide = { { { 0, 1, DITTO_U64, 0, DITTO_CSV_MISSING_VALUE, 0x1.fffffffffffffp63 },
                            { 1, 1, DITTO_I64, 0, DITTO_CSV_MISSING_VALUE, -0x1p63 } },
                          2,
                          DITTO_CSV_OPTIONS_INIT };
    expect_rows(&wide, BYTES(",\n"), "18446744073709549568|-9223372036854775808|\n");
}

static void every_dtype_has_its_limits(void **state)
{
    static const struct {
        ditto_dtype dtype;
        const char *least, *most, *below, *above;
    } limits[] = {
        { DITTO_I8, "-128", "127", "-129", "128" },
        { DITTO_I16, "-32768", "32767", "-32769", "32768" },
        { DITTO_I32, "-2147483648", "2147483647", "-2147483649", "2147483648" },
        { DITTO_I64, "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
          "9223372036854775808" },
        { DITTO_U8, "0", "255", "-1", "256" },
        { DITTO_U16, "0", "65535", "-1", "65536" },
        { DITTO_U32, "0", "4294967295", "-1", "4294967296" },
        { DITTO_U64, "0", "18446744073709551615", "-1", "18446744073709551616" },
    };
    static const char *const no_integers[] = { "nan",
                                               "inf",
                                               "-inf",
                                               "0x10",
                                               "1.5",
                                               "15e-1",
                                               ".",
                                               "-",
                                               "+",
                                               "--1",
                                               "1-",
                                               "1 2",
                                               "1_0",
                                               "",
                                               "1e",
                                               "true",
                                               "e5",
                                               "1e20",
                                               "1e99999999999",
                                               "0.1",
                                               "0.00000000000000000000",
                                               "1.00000000000000000000" };
    /* Whole numbers as programs write them that keep all numbers as floating point. */
    static const char *const integers[][2] = { { "31.0", "31" },      { "31.", "31" },
                                               { "-0.0", "0" },       { "1e+02", "100" },
                                               { "1E2", "100" },      { "12.50e1", "125" },
                                               { "1200e-2", "12" },   { ".0", "0" },
                                               { "0e99999999", "0" }, { "100.000000000000000", "100" } };
    char line[128], expected[128];
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct table t = { { { 0, 1, limits[i].dtype, 0, 0, 0 },
                             { 1, 1, limits[i].dtype, 0, 0, 0 },
                             { 2, 1, DITTO_U8, 64, 0, 0 } },
                           3,
                           DITTO_CSV_OPTIONS_INIT };
        snprintf(line, sizeof line, "%s,%s,some more text\n-0,+0000000000000000000000001,\n", limits[i].least,
                 limits[i].most);
        snprintf(expected, sizeof expected, "%s|%s|some more text|\n0|1||\n", limits[i].least,
                 limits[i].most);
        expect_rows(&t, line, strlen(line), expected);
        /* parse_short reads no field near the end of a row, so both positions are tried. */
        for (int side = 0; side < 2; side++) {
            const char *beyond = side == 0 ? limits[i].below : limits[i].above;
            snprintf(line, sizeof line, "%s,0,some more text", beyond);
            snprintf(expected, sizeof expected, ":1: column 1: \"%s\" is not a number of type %s", beyond,
                     ditto_dtype_name(limits[i].dtype));
            expect_error(&t, line, strlen(line), 0, expected);
            snprintf(line, sizeof line, "0,%s,", beyond);
            expect_error(&t, line, strlen(line), 0, ":1: column 2");
        }
        for (size_t n = 0; n < sizeof no_integers / sizeof no_integers[0]; n++) {
            snprintf(line, sizeof line, "1,%s,some more text", no_integers[n]);
            snprintf(expected, sizeof expected, ":1: column 2: \"%s\" is not a number of type",
                     no_integers[n]);
            expect_error(&t, line, strlen(line), 0, expected);
        }
        for (size_t n = 0; n < sizeof integers / sizeof integers[0]; n++) {
            snprintf(line, sizeof line, "%s,%s,some more text\n\"%s\",%s,", integers[n][0], integers[n][0],
                     integers[n][0], integers[n][0]);
            snprintf(expected, sizeof expected, "%s|%s|some more text|\n%s|%s||\n", integers[n][1],
                     integers[n][1], integers[n][1], integers[n][1]);
            expect_rows(&t, line, strlen(line), expected);
        }
        snprintf(line, sizeof line, "%s.0,%s.0,some more text", limits[i].least, limits[i].most);
        snprintf(expected, sizeof expected, "%s|%s|some more text|\n", limits[i].least, limits[i].most);
        if (strlen(limits[i].least) <= 18 && strlen(limits[i].most) <= 18)
            expect_rows(&t, line, strlen(line), expected);
        snprintf(line, sizeof line, "0,%s.0,some more text", limits[i].above);
        snprintf(expected, sizeof expected, ":1: column 2: \"%s.0\" is not a number", limits[i].above);
        expect_error(&t, line, strlen(line), 0, expected);
    }
    struct table t = { { { 0, 1, DITTO_BOOL, 0, 0, 0 } }, 1, DITTO_CSV_OPTIONS_INIT };
    expect_rows(&t, BYTES("0\n1\ntrue\n false\t\n\"true\"\n"), "0|\n1|\n1|\n0|\n1|\n");
    expect_rows(&t, BYTES("True\nFalse\nTRUE\nFALSE\n"), "1|\n0|\n1|\n0|\n");
    expect_error(&t, BYTES("tRUE\n"), 0, ":1: column 1: \"tRUE\" is none of 0, 1, true and false");
    expect_error(&t, BYTES("1\n2\n"), 1, ":2: column 1: \"2\" is none of 0, 1, true and false");
    expect_error(&t, BYTES("\"\"\n"), 0, ":1: column 1");
}

/* -- numbers -- */

/* Writes a random number in one of the forms that people and programs use. */
static void random_number(uint64_t *random, char text[80])
{
    static const char *const formats[] = { "%.17g", "%.6f", "%.3e", "%g", "%.9g", "%.0f", "%+.15E", "%.20f" };
    uint64_t bits = test_random(random), kind = test_random(random) % 12;
    double value;
    memcpy(&value, &bits, sizeof value);
    if (kind >= 8 || !isfinite(value) || fabs(value) > 1e30) /* a smaller number, which fits into `text` */
        value = (double)(int64_t)bits / (double)((uint64_t)1 << (10 + test_random(random) % 54));
    if (kind < 8)
        snprintf(text, 80, formats[kind], value);
    else if (kind == 8)
        snprintf(text, 80, "%" PRId64, (int64_t)bits >> test_random(random) % 64);
    else if (kind == 9)
        snprintf(text, 80, "%" PRIu64 ".%" PRIu64, bits >> test_random(random) % 64, test_random(random));
    else if (kind == 10)
        snprintf(text, 80, "%s%" PRIu64 "e%d", bits & 1 ? "-" : "", bits >> test_random(random) % 64,
                 (int)(test_random(random) % 700) - 350);
    else
        snprintf(text, 80, "-.%0*" PRIu64 "E-00000000000%d", 1 + (int)(bits % 18),
                 bits >> test_random(random) % 64, (int)(test_random(random) % 40));
}

struct compared {
    char (*text)[80];
    size_t at;
};

static ditto_status compare(const ditto_tensor *row, void *state)
{
    struct compared *c = state;
    double value = strtod(c->text[c->at], NULL), f64 = *(const double *)row[0].data;
    float single = (float)value, f32 = *(const float *)row[1].data;
    if (memcmp(&value, &f64, sizeof value) != 0 ||
        (!isinf(single) && memcmp(&single, &f32, sizeof single) != 0)) {
        print_error("%s is read as %.17g and %.9g\n", c->text[c->at], f64, (double)f32);
        return DITTO_ERR_USER;
    }
    c->at++;
    return DITTO_OK;
}

/* The bits must be those of the C library's strtod. An f32 is converted from a double. */
static void numbers_are_rounded_as_strtod_does(void **state)
{
    enum { MANY = 100000 };
    struct table t = { { { 0, 1, DITTO_F64, 0, 0, 0 }, { 1, 1, DITTO_F32, 0, 0, 0 } },
                       2,
                       DITTO_CSV_OPTIONS_INIT };
    struct compared c = { malloc((size_t)MANY * 80), 0 };
    uint64_t random = test_seed(4180);
    char *name = temporary_file("");
    FILE *file = fopen(name, "w");
    size_t count = 0;
    while (count < MANY) {
        random_number(&random, c.text[count]);
        double value = strtod(c.text[count], NULL);
        if (isinf(value)) /* this is an error in a CSV file */
            continue;
        fprintf(file, "%s,%s\n", c.text[count], isinf((float)value) ? "0" : c.text[count]);
        count++;
    }
    fclose(file);
    ditto_dataset *d = csv_of(name, &t);
    assert_ok(ditto_dataset_reduce(d, compare, &c, 0));
    assert_int_equal(c.at, MANY);
    assert_ok(ditto_dataset_destroy(d));
    forget_file(name);
    free(c.text);
}

static void integers_of_all_lengths_come_back(void **state)
{
    struct table t = { { { 0, 3, DITTO_I64, 0, 0, 0 } }, 1, DITTO_CSV_OPTIONS_INIT };
    uint64_t random = test_seed(8259);
    size_t room = (size_t)1 << 22, used = 0, wanted = 0;
    char *text = malloc(room), *expected = malloc(room);
    for (int i = 0; i < 20000; i++) {
        int64_t n[3];
        for (int k = 0; k < 3; k++)
            n[k] = (int64_t)test_random(&random) >> test_random(&random) % 64;
        used += (size_t)snprintf(text + used, room - used, "%" PRId64 ",%" PRId64 ",%" PRId64 "\n", n[0],
                                 n[1], n[2]);
        wanted += (size_t)snprintf(expected + wanted, room - wanted, "%" PRId64 "|%" PRId64 "|%" PRId64 "|\n",
                                   n[0], n[1], n[2]);
    }
    expect_rows(&t, text, used, expected);
    free(text);
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_utf8_and_fits),
        cmocka_unit_test(missing_values_are_errors_or_the_given_value),
        cmocka_unit_test(every_dtype_has_its_limits),
        cmocka_unit_test(numbers_are_rounded_as_strtod_does),
        cmocka_unit_test(integers_of_all_lengths_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
