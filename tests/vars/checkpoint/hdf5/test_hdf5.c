/* tests/vars/checkpoint/hdf5/test_hdf5.c - the HDF5 part of a checkpoint. The HDF5 library must read all that
 * ditto writes. ditto must read a file that an earlier version of ditto wrote with the library. Files with
 * wrong contents must lead to an error. */
#include "vars/checkpoint/checkpoint_support.h"
#include "support/checkpoints.h"
#include "support/support.h"

#include "base/types/types.h"

#include <ditto/checkpoint.h>

#include <fcntl.h>
#include <unistd.h>

/* Later versions of the HDF5 library have other functions under the same names. */
#define H5_USE_110_API
#include <hdf5.h>

#define DTYPES DTI_NUM_DTYPES

/* The number of dtypes in written_with_libhdf5.h5. */
#define OLD_DTYPES 15

#define WIDE 700 /* entries of a group, whose tree has two levels */
enum { ENTRIES = DTYPES + 2 + WIDE, MOST_BYTES = 16 * 6 };

static struct ditto_checkpoint_data data[ENTRIES];
static char names[ENTRIES][60];
static unsigned char values[ENTRIES][MOST_BYTES];

static void add(int i, ditto_dtype dtype, uint32_t rank, size_t first, size_t second)
{
    data[i] = (ditto_checkpoint_data){
        .name = names[i],
        .tensor = { .data = values[i], .dtype = dtype, .rank = rank, .shape = { first, second } },
    };
    for (int k = 0; k < MOST_BYTES; k++)
        values[i][k] = (unsigned char)(dtype == DITTO_BOOL ? k % 2 : i + 3 * k + 1);
}

static void make_data(void)
{
    for (int i = 0; i < DTYPES; i++) {
        static const char *const folders[] = { "", "deep/er/", "of-", "of/" };
        ditto_dtype dtype = (ditto_dtype)(1 + i);
        snprintf(names[i], sizeof names[i], "%s%s", folders[i % 4], ditto_dtype_name(dtype));
        add(i, dtype, 2, 2, 3);
    }
    snprintf(names[DTYPES], sizeof names[0], "scalar");
    add(DTYPES, DITTO_F64, 0, 0, 0);
    snprintf(names[DTYPES + 1], sizeof names[0], "nothing");
    add(DTYPES + 1, DITTO_I32, 2, 0, 4);
    for (int i = DTYPES + 2; i < ENTRIES; i++) {
        snprintf(names[i], sizeof names[i], "wide/%d", i * 7919 % 10007);
        add(i, DITTO_U8, 1, 1, 0);
    }
}

#define STEP 123456789012

static const ditto_attribute attributes[] = {
    { .name = "text", .kind = DITTO_ATTRIBUTE_TEXT, .text = "Gr\303\274\303\237e" },
    { .name = "empty", .kind = DITTO_ATTRIBUTE_TEXT, .text = "" },
    { .name = "integer", .kind = DITTO_ATTRIBUTE_INTEGER, .integer = -5 },
    { .name = "real", .kind = DITTO_ATTRIBUTE_REAL, .real = 0.125 },
};

static void save_all(ditto_strategy *s, const char *path)
{
    ditto_checkpoint_options options = OPTIONS(checkpoint, .step = STEP, .data = data, .num_data = ENTRIES,
                                               .attributes = attributes,
                                               .num_attributes = sizeof attributes / sizeof attributes[0]);
    assert_ok(ditto_checkpoint_save(s, path, &options));
}

static void create_variables(ditto_strategy *s, ditto_variable *out[2])
{
    ditto_tensor initial = { .dtype = DITTO_F32, .rank = 1, .shape = { 3 } };
    ditto_variable_options options = OPTIONS(variable, .name = "weights",
                                             .aggregation = DITTO_AGGREGATE_MEAN);
    assert_ok(ditto_variable_create(s, &initial, &options, &out[0]));
    options.name = "hits";
    options.synchronization = DITTO_ON_READ;
    options.aggregation = DITTO_AGGREGATE_SUM;
    assert_ok(ditto_variable_create(s, &initial, &options, &out[1]));
}

/* -- read by the HDF5 library -- */

DTI_KNOWS_DTYPES(15);

static hid_t native(ditto_dtype dtype)
{
    switch (dtype) {
    case DITTO_F32:
        return H5Tcopy(H5T_IEEE_F32LE);
    case DITTO_F64:
        return H5Tcopy(H5T_IEEE_F64LE);
    case DITTO_I8:
        return H5Tcopy(H5T_STD_I8LE);
    case DITTO_I16:
        return H5Tcopy(H5T_STD_I16LE);
    case DITTO_I32:
        return H5Tcopy(H5T_STD_I32LE);
    case DITTO_I64:
        return H5Tcopy(H5T_STD_I64LE);
    case DITTO_U8:
        return H5Tcopy(H5T_STD_U8LE);
    case DITTO_U16:
        return H5Tcopy(H5T_STD_U16LE);
    case DITTO_U32:
        return H5Tcopy(H5T_STD_U32LE);
    case DITTO_U64:
        return H5Tcopy(H5T_STD_U64LE);
    default:
        break;
    }
    hid_t type;
    if (dtype == DITTO_BOOL) {
        int8_t no = 0, yes = 1;
        type = H5Tenum_create(H5T_STD_I8LE);
        assert_true(H5Tenum_insert(type, "FALSE", &no) >= 0 && H5Tenum_insert(type, "TRUE", &yes) >= 0);
    } else if (dtype == DITTO_C64 || dtype == DITTO_C128) {
        size_t half = ditto_dtype_bytes(dtype) / 2;
        type = H5Tcreate(H5T_COMPOUND, 2 * half);
        assert_true(H5Tinsert(type, "r", 0, half == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE) >= 0);
        assert_true(H5Tinsert(type, "i", half, half == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE) >= 0);
    } else {
        size_t exponent = dtype == DITTO_F16 ? 5 : 8, fraction = 15 - exponent;
        type = H5Tcopy(H5T_IEEE_F32LE);
        assert_true(H5Tset_fields(type, 15, fraction, exponent, 0, fraction) >= 0 &&
                    H5Tset_precision(type, 16) >= 0);
        assert_true(H5Tset_ebias(type, ((size_t)1 << (exponent - 1)) - 1) >= 0 && H5Tset_size(type, 2) >= 0);
    }
    return type;
}

static void check_attribute(hid_t object, const ditto_attribute *a)
{
    char text[40] = "";
    int64_t integer = 0;
    double real = 0;
    hid_t attribute = H5Aopen(object, a->name, H5P_DEFAULT), type = H5Aget_type(attribute);
    assert_true(attribute >= 0);
    if (a->kind == DITTO_ATTRIBUTE_TEXT) {
        assert_true(H5Tget_class(type) == H5T_STRING && H5Tget_cset(type) == H5T_CSET_UTF8);
        assert_int_equal(H5Tget_size(type), strlen(a->text) + 1);
        assert_true(H5Aread(attribute, type, text) >= 0);
        assert_string_equal(text, a->text);
    } else if (a->kind == DITTO_ATTRIBUTE_INTEGER) {
        assert_true(H5Aread(attribute, H5T_NATIVE_INT64, &integer) >= 0);
        assert_int_equal(integer, a->integer);
    } else {
        assert_true(H5Aread(attribute, H5T_NATIVE_DOUBLE, &real) >= 0);
        assert_true(real == a->real);
    }
    H5Tclose(type);
    H5Aclose(attribute);
}

/* The object has these attributes, and no others. */
static void check_attributes(hid_t object, const ditto_attribute *list, size_t count)
{
    H5O_info_t info;
    assert_true(H5Oget_info(object, &info) >= 0);
    assert_int_equal(info.num_attrs, count);
    for (size_t i = 0; i < count; i++)
        check_attribute(object, &list[i]);
}

static void check_dataset(hid_t file, const ditto_checkpoint_data *d)
{
    unsigned char found[MOST_BYTES];
    hsize_t shape[DITTO_MAX_RANK];
    hid_t set = H5Dopen2(file, d->name, H5P_DEFAULT);
    assert_true(set >= 0);
    hid_t space = H5Dget_space(set), type = H5Dget_type(set), wanted = native(d->tensor.dtype);
    assert_true(H5Tequal(type, wanted) > 0);
    assert_int_equal(H5Sget_simple_extent_dims(space, shape, NULL), d->tensor.rank);
    for (uint32_t i = 0; i < d->tensor.rank; i++)
        assert_int_equal(shape[i], d->tensor.shape[i]);
    assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
    assert_memory_equal(found, d->tensor.data, ditto_tensor_bytes(&d->tensor));
    H5Tclose(wanted);
    H5Tclose(type);
    H5Sclose(space);
    const ditto_attribute own[] = {
        { .name = "dtype", .kind = DITTO_ATTRIBUTE_TEXT, .text = ditto_dtype_name(d->tensor.dtype) },
        { .name = "kind", .kind = DITTO_ATTRIBUTE_TEXT, .text = "data" },
    };
    check_attributes(set, own, sizeof own / sizeof own[0]);
    H5Dclose(set);
}

static void check_variable(hid_t file, const char *name, const char *synchronization, const char *aggregation,
                           int trainable)
{
    const ditto_attribute own[] = {
        { .name = "dtype", .kind = DITTO_ATTRIBUTE_TEXT, .text = "f32" },
        { .name = "synchronization", .kind = DITTO_ATTRIBUTE_TEXT, .text = synchronization },
        { .name = "aggregation", .kind = DITTO_ATTRIBUTE_TEXT, .text = aggregation },
        { .name = "trainable", .kind = DITTO_ATTRIBUTE_INTEGER, .integer = trainable },
    };
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    assert_true(set >= 0);
    check_attributes(set, own, sizeof own / sizeof own[0]);
    H5Dclose(set);
}

static herr_t count_datasets(hid_t root, const char *name, const H5O_info_t *info, void *count)
{
    *(int *)count += info->type == H5O_TYPE_DATASET;
    return 0;
}

static void the_hdf5_library_reads_every_entry_and_attribute(void **state)
{
    const ditto_attribute of_ditto[] = {
        { .name = "ditto_version", .kind = DITTO_ATTRIBUTE_TEXT, .text = ditto_version() },
        { .name = "ditto_step", .kind = DITTO_ATTRIBUTE_INTEGER, .integer = STEP },
    };
    int found = 0;
    ditto_strategy *s = make_strategy(1, NULL);
    ditto_variable *variable[2];
    create_variables(s, variable);
    save_all(s, own_path("all.h5"));
    hid_t file = H5Fopen(own_path("all.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    for (int i = 0; i < ENTRIES; i++)
        check_dataset(file, &data[i]);
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        check_attribute(file, &attributes[i]);
    for (size_t i = 0; i < sizeof of_ditto / sizeof of_ditto[0]; i++)
        check_attribute(file, &of_ditto[i]);
    check_variable(file, "weights", "ON_WRITE", "MEAN", 1);
    check_variable(file, "hits", "ON_READ", "SUM", 0);
    assert_true(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, count_datasets, &found) >= 0);
    assert_int_equal(found, ENTRIES + 2);
    assert_true(H5Lexists(file, "wide/x", H5P_DEFAULT) == 0);
    assert_true(H5Fclose(file) >= 0);
    for (int i = 0; i < 2; i++)
        assert_ok(ditto_variable_destroy(variable[i]));
    assert_ok(ditto_strategy_destroy(s));
}

static void the_same_contents_give_the_same_bytes(void **state)
{
    unsigned char *first, *second;
    ditto_strategy *s = make_strategy(1, NULL);
    save_all(s, own_path("first.h5"));
    save_all(s, own_path("second.h5"));
    size_t count = read_file(own_path("first.h5"), &first);
    assert_int_equal(read_file(own_path("second.h5"), &second), count);
    assert_memory_equal(first, second, count);
    free(first);
    free(second);
    assert_ok(ditto_strategy_destroy(s));
}

static void every_entry_is_read_back(void **state)
{
    unsigned char found[MOST_BYTES];
    ditto_checkpoint *file;
    ditto_attribute attribute;
    ditto_strategy *s = make_strategy(1, NULL);
    save_all(s, own_path("all.h5"));
    assert_ok(ditto_checkpoint_open(NULL, own_path("all.h5"), &file));
    assert_int_equal(contents_of(file).num_entries, ENTRIES);
    assert_int_equal(contents_of(file).step, STEP);
    for (int i = 0; i < ENTRIES; i++) {
        size_t bytes = ditto_tensor_bytes(&data[i].tensor);
        assert_ok(ditto_checkpoint_read(file, data[i].name, found, bytes));
        assert_memory_equal(found, values[i], bytes);
    }
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        const ditto_attribute *wanted = &attributes[i];
        attribute = attribute_of(file, wanted->name);
        assert_string_equal(attribute.name, wanted->name);
        assert_int_equal(attribute.kind, wanted->kind);
        if (wanted->kind == DITTO_ATTRIBUTE_TEXT)
            assert_string_equal(attribute.text, wanted->text);
        else if (wanted->kind == DITTO_ATTRIBUTE_INTEGER)
            assert_int_equal(attribute.integer, wanted->integer);
        else
            assert_true(attribute.real == wanted->real);
    }
    assert_ok(ditto_checkpoint_close(file));
    assert_ok(ditto_strategy_destroy(s));
}

/* -- written by the HDF5 library -- */

/* tests/vars/checkpoint/hdf5/written_with_libhdf5.h5 is a checkpoint with a matrix of every dtype and four
 * other entries. ditto 0.1.0 wrote it when it still called HDF5 1.10.8. Byte k of the matrix of dtype d is
 * 17 + 3 k + d, or k % 2 for bool. */
static void a_checkpoint_that_was_written_with_the_hdf5_library_is_read(void **state)
{
    ditto_checkpoint *file;
    ditto_checkpoint_entry entry;
    ditto_attribute attribute;
    unsigned char found[MOST_BYTES];
    int dtypes = 0;
    assert_ok(ditto_checkpoint_open(NULL, "tests/vars/checkpoint/hdf5/written_with_libhdf5.h5", &file));
    assert_int_equal(contents_of(file).num_entries, OLD_DTYPES + 4);
    assert_int_equal(contents_of(file).step, 123456789012);
    assert_string_equal(contents_of(file).version, "0.1.0");
    attribute = attribute_of(file, "note");
    assert_string_equal(attribute.text, "Gr\303\274\303\237e");
    attribute = attribute_of(file, "epoch");
    assert_int_equal(attribute.integer, -5);
    attribute = attribute_of(file, "loss");
    assert_true(attribute.real == 0.125);
    for (size_t i = 0; i < contents_of(file).num_entries; i++) {
        assert_ok(ditto_checkpoint_get(file, i, &entry));
        size_t bytes = ditto_tensor_bytes(&entry.spec);
        assert_ok(ditto_checkpoint_read(file, entry.name, found, bytes));
        if (entry.spec.rank != 2 || bytes == 0)
            continue;
        dtypes++;
        assert_int_equal(entry.trainable, (int)entry.spec.dtype % 2);
        for (size_t k = 0; k < bytes; k++)
            assert_int_equal(found[k], (unsigned char)(entry.spec.dtype == DITTO_BOOL
                                                           ? k % 2
                                                           : 17 + 3 * k + (size_t)entry.spec.dtype));
    }
    assert_int_equal(dtypes, OLD_DTYPES);
    size_t at = 0;
    do
        assert_ok(ditto_checkpoint_get(file, at++, &entry));
    while (strcmp(entry.name, "onread") != 0);
    assert_int_equal(entry.synchronization, DITTO_ON_READ);
    assert_int_equal(entry.aggregation, DITTO_AGGREGATE_SUM);
    assert_ok(ditto_checkpoint_close(file));
}

/* -- many nested groups -- */

enum { DEEP = 2000 };

static void put_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(text) + 1);
    hid_t a = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, type, text) >= 0);
    H5Aclose(a);
    H5Sclose(space);
    H5Tclose(type);
}

static int open_deep(void *path)
{
    static char name[2 * DEEP + 2];
    ditto_checkpoint *file;
    double value = 0;
    for (int i = 0; i < DEEP; i++)
        memcpy(name + 2 * i, "g/", 2);
    name[sizeof name - 2] = 'v';
    REQUIRE(ditto_checkpoint_open(NULL, path, &file) == DITTO_OK);
    REQUIRE(contents_of(file).num_entries == 1);
    REQUIRE(ditto_checkpoint_read(file, name, &value, sizeof value) == DITTO_OK);
    REQUIRE(value == 3);
    REQUIRE(ditto_checkpoint_close(file) == DITTO_OK);
    return 0;
}

static void two_thousand_nested_groups_are_read(void **state)
{
    double three = 3;
    int64_t step = 1;
    char path[200];
    snprintf(path, sizeof path, "%s", own_path("deep.h5"));
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), scalar = H5Screate(H5S_SCALAR);
    H5Pset_userblock(creation, 4096);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, H5P_DEFAULT),
          group = H5Gopen2(file, "/", H5P_DEFAULT);
    put_text(file, "ditto_version", "0.1.0");
    hid_t a = H5Acreate2(file, "ditto_step", H5T_NATIVE_INT64, scalar, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(a, H5T_NATIVE_INT64, &step) >= 0);
    H5Aclose(a);
    for (int i = 0; i < DEEP; i++) {
        hid_t inner = H5Gcreate2(group, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        group = inner;
    }
    hid_t set = H5Dcreate2(group, "v", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &three) >= 0);
    put_text(set, "dtype", "f64");
    put_text(set, "kind", "data");
    H5Dclose(set);
    H5Gclose(group);
    H5Sclose(scalar);
    H5Pclose(creation);
    assert_true(H5Fclose(file) >= 0);
    seal_file(path);
    assert_int_equal(in_child(open_deep, path, 60), 0);
}

static void names_in_too_many_groups_are_refused(void **state)
{
    static char name[2 * DITTO_MAX_CHECKPOINT_GROUPS + 4];
    float one = 1;
    ditto_checkpoint_data deep = { .name = name, .tensor = { .data = &one, .dtype = DITTO_F32 } };
    ditto_strategy *s = make_strategy(1, NULL);
    ditto_checkpoint_options options = OPTIONS(checkpoint, .data = &deep, .num_data = 1);
    for (int i = 0; i < DITTO_MAX_CHECKPOINT_GROUPS; i++)
        memcpy(name + 2 * i, "g/", 2);
    name[2 * DITTO_MAX_CHECKPOINT_GROUPS] = 'v';
    assert_ok(ditto_checkpoint_save(s, own_path("deep.h5"), &options));
    memcpy(name + 2 * DITTO_MAX_CHECKPOINT_GROUPS, "g/v", 3);
    assert_status(ditto_checkpoint_save(s, own_path("deep.h5"), &options), DITTO_ERR_INVALID);
    assert_message("is in more than 256 groups");
    assert_ok(ditto_strategy_destroy(s));
}

static void names_are_saved_up_to_a_length_that_is_read_again_and_longer_ones_are_refused(void **state)
{
    enum { MOST = DITTO_MAX_CHECKPOINT_NAME_BYTES, TRIED = 70000 };
    static char name[TRIED + 1];
    float two = 2, found = 0;
    ditto_checkpoint *file;
    ditto_checkpoint_data named = { .name = name, .tensor = { .data = &two, .dtype = DITTO_F32 } };
    ditto_strategy *s = make_strategy(1, NULL);
    ditto_checkpoint_options options = OPTIONS(checkpoint, .data = &named, .num_data = 1);
    for (int in_folder = 0; in_folder < 2; in_folder++) {
        memset(name, 'n', TRIED);
        name[MOST / 2] = in_folder ? '/' : 'n';
        name[MOST] = '\0';
        assert_ok(ditto_checkpoint_save(s, own_path("long.h5"), &options));
        assert_ok(ditto_checkpoint_open(NULL, own_path("long.h5"), &file));
        assert_ok(ditto_checkpoint_read(file, name, &found, sizeof found));
        assert_true(found == two);
        assert_ok(ditto_checkpoint_close(file));
        name[MOST] = 'n';
        name[MOST + 1] = '\0';
        assert_status(ditto_checkpoint_save(s, own_path("longer.h5"), &options), DITTO_ERR_INVALID);
        assert_message("has 4097 bytes: at most 4096 can be saved");
        name[MOST + 1] = 'n';
        assert_status(ditto_checkpoint_save(s, own_path("longer.h5"), &options), DITTO_ERR_INVALID);
        assert_message("has 70000 bytes: at most 4096 can be saved");
        assert_int_not_equal(access(own_path("longer.h5"), F_OK), 0);
    }
    assert_ok(ditto_strategy_destroy(s));
}

/* -- files with wrong contents -- */

/* Returns the position of `word`, which has four bytes, at or after `from`. */
static size_t find(const unsigned char *bytes, size_t count, size_t from, const char *word)
{
    for (size_t i = from; i + 4 <= count; i++)
        if (memcmp(bytes + i, word, 4) == 0)
            return i;
    fail_msg("no %s in the file", word);
    return 0;
}

static void expect_corrupt(unsigned char *bytes, size_t count, const char *says)
{
    ditto_checkpoint *file;
    const char *path = own_path("wrong.h5");
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    seal_bytes(bytes, count);
    assert_int_equal(write(fd, bytes, count), count);
    assert_int_equal(close(fd), 0);
    assert_status(ditto_checkpoint_open(NULL, path, &file), DITTO_ERR_CORRUPT);
    assert_message(says);
}

static void structures_that_refer_to_each_other_in_circles_are_refused(void **state)
{
    unsigned char *bytes, *kept;
    ditto_strategy *s = make_strategy(1, NULL);
    save_all(s, own_path("all.h5"));
    size_t count = read_file(own_path("all.h5"), &bytes);
    kept = malloc(count);
    memcpy(kept, bytes, count);
    /* The first member of a group becomes the root. The superblock contains the address of the root's
     * header. */
    size_t node = find(bytes, count, 4096, "SNOD");
    memcpy(bytes + node + 8 + 8, bytes + 4096 + 64, 8);
    expect_corrupt(bytes, count, "in circles");
    /* A tree's node of level 1 becomes its own first child. As a child it has the wrong level. */
    memcpy(bytes, kept, count);
    size_t tree = find(bytes, count, 4096, "TREE");
    while (bytes[tree + 5] != 1)
        tree = find(bytes, count, tree + 1, "TREE");
    uint64_t child = tree - 4096;
    memcpy(bytes + tree + 32, &child, 8);
    expect_corrupt(bytes, count, "points to something else");
    /* The first child is at an address behind the end of the file. */
    memcpy(bytes, kept, count);
    child = count;
    memcpy(bytes + tree + 32, &child, 8);
    expect_corrupt(bytes, count, "points past its end");
    free(bytes);
    free(kept);
    assert_ok(ditto_strategy_destroy(s));
}

static size_t find_last(const unsigned char *bytes, size_t count, const char *word)
{
    size_t last = find(bytes, count, 4096, word);
    for (size_t i = last + 1; i + 4 <= count; i++)
        if (memcmp(bytes + i, word, 4) == 0)
            last = i;
    return last;
}

/* Saves `count` data and reads the file. *bytes has `more` zeros after the bytes of the file. Returns the
 * length of the file. */
static size_t save_and_read(const ditto_checkpoint_data *saved, size_t count, size_t more,
                            unsigned char **bytes)
{
    ditto_strategy *s = make_strategy(1, NULL);
    assert_ok(ditto_checkpoint_save(s, own_path("good.h5"),
                                    &OPTIONS(checkpoint, .data = saved, .num_data = count)));
    assert_ok(ditto_strategy_destroy(s));
    size_t length = read_file(own_path("good.h5"), bytes);
    *bytes = realloc(*bytes, length + more);
    memset(*bytes + length, 0, more);
    return length;
}

static void paths_that_are_much_longer_than_the_file_are_refused(void **state)
{
    enum { GROUPS = 20000, NAME = 4000, HEADER = 40, SYMBOL = 40 };
    static char name[NAME + 3];
    float one = 1;
    unsigned char *bytes;
    uint64_t address;
    snprintf(name, sizeof name, "%0*d/v", NAME, 0);
    ditto_checkpoint_data in_group = { .name = name, .tensor = { .data = &one, .dtype = DITTO_F32 } };
    size_t count = save_and_read(&in_group, 1, 16 + GROUPS * (HEADER + SYMBOL), &bytes);
    /* The root group has one symbol, which names the inner group. Copies of the inner group's header are
     * appended to the file, and then a node of symbols that gives all of them the same name. */
    size_t symbol = find_last(bytes, count, "SNOD") + 8, tree = find_last(bytes, count, "TREE");
    size_t headers = (count + 7) / 8 * 8, node = headers + GROUPS * HEADER;
    memcpy(&address, bytes + symbol + 8, 8);
    memcpy(bytes + node, "SNOD\1", 5);
    memcpy(bytes + node + 6, &(uint16_t){ GROUPS }, 2);
    for (size_t i = 0; i < GROUPS; i++) {
        uint64_t own = headers + i * HEADER - 4096;
        memcpy(bytes + 4096 + own, bytes + 4096 + address, HEADER);
        memcpy(bytes + node + 8 + i * SYMBOL, bytes + symbol, SYMBOL);
        memcpy(bytes + node + 8 + i * SYMBOL + 8, &own, 8);
    }
    memcpy(bytes + tree + 32, &(uint64_t){ node - 4096 }, 8);
    memcpy(bytes + 4096 + 16, &(uint16_t){ GROUPS / 2 }, 2); /* half of the capacity of a symbol node */
    expect_corrupt(bytes, node + 8 + GROUPS * SYMBOL, "its names are longer than its length allows");
    free(bytes);
}

/* The values have no bytes and their names have the largest length, so this is the most that the limit on
 * paths must allow. */
static void many_long_names_of_empty_values_are_read(void **state)
{
    enum { VALUES = 2000, NAME = DITTO_MAX_CHECKPOINT_NAME_BYTES };
    static char name[VALUES][NAME + 1];
    static ditto_checkpoint_data named[VALUES];
    ditto_checkpoint *file;
    unsigned char *bytes;
    for (int i = 0; i < VALUES; i++) {
        memset(name[i], 'n', NAME - 6);
        snprintf(name[i] + NAME - 6, 7, "/%05d", i);
        named[i] = (ditto_checkpoint_data){ .name = name[i], .tensor = { .dtype = DITTO_U8, .rank = 1 } };
    }
    (void)save_and_read(named, VALUES, 0, &bytes);
    assert_ok(ditto_checkpoint_open(NULL, own_path("good.h5"), &file));
    assert_int_equal(contents_of(file).num_entries, VALUES);
    assert_ok(ditto_checkpoint_close(file));
    free(bytes);
}

/* Returns the position of the wanted bytes in the HDF5 part, which must contain them once. */
static size_t find_bytes(const unsigned char *bytes, size_t count, const unsigned char *wanted, size_t length)
{
    size_t found = 0;
    for (size_t i = 4096; i + length <= count; i++)
        if (memcmp(bytes + i, wanted, length) == 0) {
            assert_int_equal(found, 0);
            found = i;
        }
    assert_int_not_equal(found, 0);
    return found;
}

static void values_that_overlap_are_refused(void **state)
{
    enum { LARGE = 1 << 20, SMALL = 77 };
    static uint8_t large[LARGE];
    static const unsigned char shape[] = { 1, 1, 1, 0, 0, 0, 0, 0, SMALL, 0, 0, 0, 0, 0, 0, 0 };
    unsigned char *bytes, layout[18] = { 3, 1 };
    uint64_t address = 0, length = LARGE;
    const ditto_checkpoint_data two[] = {
        { .name = "a", .tensor = { .data = large, .dtype = DITTO_U8, .rank = 1, .shape = { LARGE } } },
        { .name = "b", .tensor = { .data = large, .dtype = DITTO_U8, .rank = 1, .shape = { SMALL } } },
    };
    size_t count = save_and_read(two, 2, 0, &bytes);
    /* The shape, the address and the length of b's values are replaced by those of a's values. */
    size_t of_b = find_bytes(bytes, count, shape, sizeof shape) + 8;
    for (size_t i = 0; i + sizeof layout <= count && address == 0; i++)
        if (memcmp(bytes + i, layout, 2) == 0 && memcmp(bytes + i + 10, &length, 8) == 0)
            memcpy(&address, bytes + i + 2, 8);
    memcpy(bytes + of_b, &length, 8);
    memcpy(bytes + of_b + 8, &length, 8);
    for (size_t i = of_b; i + sizeof layout <= count; i++)
        if (memcmp(bytes + i, layout, 2) == 0 && memcmp(bytes + i + 10, &(uint64_t){ SMALL }, 8) == 0) {
            memcpy(bytes + i + 2, &address, 8);
            memcpy(bytes + i + 10, &length, 8);
        }
    expect_corrupt(bytes, count, "the dataset \"b\" is not one that ditto writes");
    free(bytes);
}

/* -- messages -- */

static void attributes_that_do_not_fit_are_refused_with_their_sizes(void **state)
{
    static char name[60001];
    ditto_attribute large = { .name = name, .kind = DITTO_ATTRIBUTE_TEXT, .text = name };
    ditto_strategy *s = make_strategy(1, NULL);
    memset(name, 'n', sizeof name - 1);
    assert_status(ditto_checkpoint_save(s, own_path("large.h5"),
                                        &OPTIONS(checkpoint, .data = data, .num_data = 1,
                                                 .attributes = &large, .num_attributes = 1)),
                  DITTO_ERR_INVALID);
    assert_message("its name has 60000 bytes and its value 60001");
    assert_int_not_equal(access(own_path("large.h5"), F_OK), 0);
    assert_ok(ditto_strategy_destroy(s));
}

static int begin(void **state)
{
    make_data();
    return make_own_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hdf5_library_reads_every_entry_and_attribute),
        cmocka_unit_test(every_entry_is_read_back),
        cmocka_unit_test(the_same_contents_give_the_same_bytes),
        cmocka_unit_test(a_checkpoint_that_was_written_with_the_hdf5_library_is_read),
        cmocka_unit_test(two_thousand_nested_groups_are_read),
        cmocka_unit_test(names_in_too_many_groups_are_refused),
        cmocka_unit_test(names_are_saved_up_to_a_length_that_is_read_again_and_longer_ones_are_refused),
        cmocka_unit_test(structures_that_refer_to_each_other_in_circles_are_refused),
        cmocka_unit_test(paths_that_are_much_longer_than_the_file_are_refused),
        cmocka_unit_test(many_long_names_of_empty_values_are_read),
        cmocka_unit_test(values_that_overlap_are_refused),
        cmocka_unit_test(attributes_that_do_not_fit_are_refused_with_their_sizes),
    };
    return cmocka_run_group_tests(tests, begin, remove_own_folder);
}
