/* tests/fuzz/fuzz_csv.c - CSV files of any bytes, read with options that the first byte chooses. If the
 * reader accepts a file, its rows, texts, numbers and bools must be those of a slow reference, which reads
 * one byte after the other. If the reader refuses a file with two texts in each row, which are all ASCII and
 * fit, the reference must refuse it too, or the file begins as no text does. Other refusals are not
 * compared. */
#include "fuzz/fuzz.h"
#include "support/support.h"

#include <ditto/source.h>

#include "input/sources/files/signature.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

/* The first byte is '@' plus bits. 1: no quotes. 2: missing numbers are 7, and missing bools true. 4 and 8:
 * which table of components. 16: one line is skipped. 32: semicolons instead of commas. */
const char *const fuzz_seeds[] = {
    "@a,b\n\"c\",\"d,\"\"e\"\"\"\r\n\"\n\",\n",
    "Ax,\"y\n\"\",z\n",
    "D12,1.5\n-3,2e-3\n\"4\",\" -0 \"\n",
    "F12345678,\n,1e22\n\n 7 ,.5e+1",
    "H1,200,text\n0,3,\"\xc3\xa4\"\ntrue,0,\nfalse,255,\xe2\x82\xac\n",
    "L1.25,-3,4e5,x,y\n123456,1,\"2\",,\"a\"\"\n\"\n",
    "P\"heading\n\xef\xbb\xbf,1\na,b\n",
    "d-1;0.1\r\n2147483647;9007199254740993\r\n",
    "F31.0,nan\n1e+05,NA\nNaN,1\n",
    "JTRUE,2.0,x\nFalse,NA,y\nNA,1e2,z\n",
    "@\xef\xbb\xbf"
    "a,b\n \t\nc,d\n",
    NULL,
};
const char *const fuzz_words[] = { "\"",    "\"\"", ",",          ";",        "\n",     "\r\n", "\"\n\"",
                                   "1e308", "-0",   "0.000001",   "99999999", "true",   " ",    "\t",
                                   "\xef",  "\xff", "2147483648", "1e-400",   "\r",     "",     "nan",
                                   "NA",    ".000", "e+00",       "FALSE",    "PK\3\4", NULL };
unsigned long fuzz_accepted;

enum { MOST = 1 << 13, COLUMNS = 5, TEXT = 16 };
static const struct {
    ditto_csv_component component[3];
    uint32_t components, columns;
} tables[4] = {
    { { { 0, 1, DITTO_U8, TEXT, 0, 7 }, { 1, 1, DITTO_U8, TEXT, 0, 7 } }, 2, 2 },
    { { { 0, 1, DITTO_I32, 0, 0, 7 }, { 1, 1, DITTO_F64, 0, 0, 7 } }, 2, 2 },
    { { { 0, 1, DITTO_BOOL, 0, 0, 1 }, { 1, 1, DITTO_U8, 0, 0, 7 }, { 2, 1, DITTO_U8, TEXT, 0, 7 } }, 3, 3 },
    /* Two columns are not used, and one is used twice. */
    { { { 0, 3, DITTO_F64, 0, 0, 7 }, { 0, 1, DITTO_F64, 0, 0, 7 } }, 2, COLUMNS },
};

/* -- The reference -- */

struct row {
    const char *text[COLUMNS]; /* points into `kept` */
    size_t length[COLUMNS];
    uint32_t columns;
};
static struct row rows[MOST];
static char kept[2 * MOST];
static size_t num_rows, num_kept;

/* True if every row has valid fields in the right number. The reader may still refuse a number or a text. */
static bool good;

static const char *at, *end;
static char delimiter;
static bool quotes;

static bool line_ends(void)
{
    return at == end || *at == '\n' || (*at == '\r' && at + 1 < end && at[1] == '\n');
}

/* Reads a field. Returns false if it is not valid. */
static bool take_field(struct row *row)
{
    char *to = kept + num_kept;
    size_t length = 0;
    bool quoted = quotes && at < end && *at == '"';
    for (at += quoted; quoted ? at < end : !line_ends() && *at != delimiter; at++) {
        if (quoted && *at == '"') {
            if (at + 1 == end || at[1] != '"')
                break;
            at++;
        } else if (quotes && *at == '"')
            return false;
        to[length++] = *at;
    }
    if (quoted && (at == end || (++at, !line_ends() && *at != delimiter)))
        return false;
    if (row->columns < COLUMNS) {
        row->text[row->columns] = to;
        row->length[row->columns] = length;
    }
    to[length] = '\0'; /* for strtod */
    num_kept += length + 1;
    row->columns++;
    return true;
}

/* Reads a row or a blank line. Returns false if it is not valid. The rest of the file is then not read. */
static bool take_row(uint32_t columns)
{
    struct row *row = &rows[num_rows];
    const char *begin = at;
    *row = (struct row){ 0 };
    for (;;) {
        if (!take_field(row))
            return false;
        if (line_ends())
            break;
        at++; /* a delimiter */
    }
    bool blank = true;
    for (const char *p = begin; p < at; p++)
        blank &= (*p == ' ' || *p == '\t') && *p != delimiter;
    if (at < end)
        at += *at == '\r' ? 2 : 1;
    num_rows += !blank;
    return blank || row->columns == columns;
}

static void read_reference(const char *bytes, size_t length, bool skip, uint32_t columns)
{
    at = bytes;
    end = bytes + length;
    num_rows = num_kept = 0;
    good = true;
    if (length >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    while (skip && at < end && *at++ != '\n')
        ;
    while (at < end && good)
        good = take_row(columns);
}

/* -- The comparison of the reader with the reference -- */

static size_t seen;
static unsigned table;

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Returns the value of a number, of a bool, or of a missing field. */
static double value_of(const char *text, ditto_dtype dtype)
{
    text += strspn(text, " \t");
    if (*text == '\0' || *text == 'n' || *text == 'N')
        return dtype == DITTO_BOOL ? 1 : 7;
    return dtype == DITTO_BOOL ? *text == 't' || *text == 'T' || *text == '1' : strtod(text, NULL);
}

static void same_number(const char *text, const ditto_tensor *t, uint32_t element)
{
    double value = value_of(text, t->dtype);
    if (t->dtype == DITTO_F64)
        require(memcmp((double *)t->data + element, &value, sizeof value) == 0);
    else if (t->dtype == DITTO_I32)
        require(*(int32_t *)t->data == value);
    else /* DITTO_U8 or DITTO_BOOL */
        require(*(uint8_t *)t->data == value);
}

static ditto_status same_row(const ditto_tensor *row, void *state)
{
    require(seen < num_rows);
    for (uint32_t k = 0; k < tables[table].components; k++) {
        const ditto_csv_component *c = &tables[table].component[k];
        for (uint32_t i = 0; i < c->num_columns; i++) {
            const char *text = rows[seen].text[c->first_column + i], zeros[TEXT] = { 0 };
            size_t length = rows[seen].length[c->first_column + i];
            /* The reference found this row invalid, so the reader must not return it. */
            if (text == NULL)
                abort();
            if (c->text_bytes == 0)
                same_number(text, &row[k], i);
            else
                require(length <= TEXT && memcmp(row[k].data, text, length) == 0 &&
                        memcmp((char *)row[k].data + length, zeros, TEXT - length) == 0);
        }
    }
    seen++;
    return DITTO_OK;
}

/* For table 0. Returns true if all texts are ASCII and fit, so that the reader must accept them. */
static bool plain_texts(void)
{
    for (size_t r = 0; r < num_rows; r++)
        for (uint32_t c = 0; c < tables[0].columns; c++) {
            if (rows[r].length[c] > TEXT)
                return false;
            for (size_t i = 0; i < rows[r].length[c]; i++)
                if ((unsigned char)rows[r].text[c][i] > 127)
                    return false;
        }
    return true;
}

static const char *file_with(const uint8_t *data, size_t size)
{
    static char name[32];
    static int file = -1;
    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        /* The windows of files are large, and would otherwise be mapped anew for each input. */
        mallopt(M_MMAP_THRESHOLD, 1 << 30);
        mallopt(M_TRIM_THRESHOLD, 1 << 30);
    }
    require(pwrite(file, data, size, 0) == (ssize_t)size && ftruncate(file, (off_t)size) == 0);
    return name;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ditto_csv_component components[3];
    ditto_dataset *d;
    if (size == 0 || size > MOST)
        return 0;
    table = data[0] >> 2 & 3;
    quotes = (data[0] & 1) == 0;
    delimiter = data[0] & 32 ? ';' : ',';
    memcpy(components, tables[table].component, sizeof components);
    for (uint32_t k = 0; k < 3; k++)
        components[k].missing = data[0] & 2 ? DITTO_CSV_MISSING_VALUE : DITTO_CSV_MISSING_DEFAULT;
    ditto_csv_options options = { .struct_size = sizeof options,
                                  .no_quotes = !quotes,
                                  .skip_lines = (data[0] & 16) != 0,
                                  .delimiter = delimiter,
                                  .num_columns = tables[table].columns };
    read_reference((const char *)data + 1, size - 1, options.skip_lines != 0, options.num_columns);
    const char *name = file_with(data + 1, size - 1);
    ditto_status status = ditto_dataset_from_csv(&(ditto_files){ &name, 1, 0 }, components,
                                                 tables[table].components, &options, &d);
    /* The only reasons for a refusal here are a file without rows, and one that is not text. */
    if (status != DITTO_OK) {
        bool is_text = dti_signature_find((const char *)data + 1, size - 1, true) == NULL;
        require(is_text ? status == DITTO_ERR_INVALID && num_rows == 0 && good : status == DITTO_ERR_CORRUPT);
        return 0;
    }
    seen = 0;
    status = ditto_dataset_reduce(d, same_row, NULL, 0);
    fuzz_again(d);
    assert_ok(ditto_dataset_destroy(d));
    require(status == DITTO_OK || (status == DITTO_ERR_CORRUPT && !(table == 0 && good && plain_texts())));
    require(status != DITTO_OK || (good && seen == num_rows));
    fuzz_accepted += status == DITTO_OK;
    return 0;
}
