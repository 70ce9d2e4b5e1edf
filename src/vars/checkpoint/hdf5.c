/* src/vars/checkpoint/hdf5.c - see hdf5.h. */
#include "vars/checkpoint/hdf5.h"
#include "base/base.h"
#include "vars/checkpoint/file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

#define ALIGN_FROM ((hsize_t)64 << 10) /* larger values begin on pages */
#define ALIGNMENT  ((hsize_t)4096)

/* Files have names of their own until they are whole, and a checksum: locks of other programs are none of our business. */
static void ignore_locks(hid_t access)
{
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access, 0, 1);
#else
    (void)access;
#endif
}

/* -- going in -- */

/* One thread at a time, HDF5 need not be thread-safe; its errors are ours to tell, and the program's own way to print them is put
 * back. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct visit {
    H5E_auto2_t print;
    void *data;
};

static struct visit go_in(void)
{
    struct visit visit;
    pthread_mutex_lock(&lock);
    H5open();
    H5Eget_auto2(H5E_DEFAULT, &visit.print, &visit.data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return visit;
}

static void go_out(struct visit visit)
{
    H5Eset_auto2(H5E_DEFAULT, visit.print, visit.data);
    pthread_mutex_unlock(&lock);
}

static herr_t innermost(unsigned number, const H5E_error2_t *error, void *words)
{
    (void)number;
    snprintf(words, 200, "%s", error->desc != NULL ? error->desc : "");
    return 0;
}

static ditto_status fail(ditto_status status, const char *path, const char *what)
{
    char words[200] = "no reason given";
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, words);
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, innermost, words); /* ends with the first cause */
    return DTI_FAIL(status, "%s: HDF5 can't %s: %s", path, what, words);
}

/* -- types -- */

static hid_t small_float(size_t exponent_bits, size_t fraction_bits)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, fraction_bits, exponent_bits, 0, fraction_bits);
    H5Tset_precision(type, 16);
    H5Tset_ebias(type, ((size_t)1 << (exponent_bits - 1)) - 1);
    H5Tset_offset(type, 0);
    H5Tset_size(type, 2);
    return type;
}

static hid_t complex_of(hid_t real, size_t bytes)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, 2 * bytes);
    H5Tinsert(type, "r", 0, real);
    H5Tinsert(type, "i", bytes, real);
    return type;
}

static hid_t boolean(void)
{
    hid_t type = H5Tenum_create(H5T_NATIVE_INT8);
    int8_t no = 0, yes = 1;
    H5Tenum_insert(type, "FALSE", &no);
    H5Tenum_insert(type, "TRUE", &yes);
    return type;
}

/* To be closed. */
static hid_t type_of(ditto_dtype dtype)
{
    switch (dtype) {
    case DITTO_F16:
        return small_float(5, 10);
    case DITTO_BF16:
        return small_float(8, 7);
    case DITTO_F32:
        return H5Tcopy(H5T_NATIVE_FLOAT);
    case DITTO_F64:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case DITTO_C64:
        return complex_of(H5T_NATIVE_FLOAT, 4);
    case DITTO_C128:
        return complex_of(H5T_NATIVE_DOUBLE, 8);
    case DITTO_I8:
        return H5Tcopy(H5T_NATIVE_INT8);
    case DITTO_I16:
        return H5Tcopy(H5T_NATIVE_INT16);
    case DITTO_I32:
        return H5Tcopy(H5T_NATIVE_INT32);
    case DITTO_I64:
        return H5Tcopy(H5T_NATIVE_INT64);
    case DITTO_U8:
        return H5Tcopy(H5T_NATIVE_UINT8);
    case DITTO_U16:
        return H5Tcopy(H5T_NATIVE_UINT16);
    case DITTO_U32:
        return H5Tcopy(H5T_NATIVE_UINT32);
    case DITTO_U64:
        return H5Tcopy(H5T_NATIVE_UINT64);
    case DITTO_BOOL:
        return boolean();
    }
    return H5I_INVALID_HID;
}

/* -- attributes; false: HDF5 has failed, and its stack of errors tells why -- */

static bool put_attribute(hid_t object, const char *name, hid_t type, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    good = (attribute < 0 || H5Aclose(attribute) >= 0) && good;
    H5Sclose(space);
    return good;
}

static bool put_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(text) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    bool good = put_attribute(object, name, type, text);
    H5Tclose(type);
    return good;
}

static bool put_user_attribute(hid_t object, const ditto_attribute *a)
{
    switch (a->kind) {
    case DITTO_ATTRIBUTE_TEXT:
        return put_text(object, a->name, a->text);
    case DITTO_ATTRIBUTE_INTEGER:
        return put_attribute(object, a->name, H5T_NATIVE_INT64, &a->integer);
    default:
        return put_attribute(object, a->name, H5T_NATIVE_DOUBLE, &a->real);
    }
}

/* One element: what is read from a file must fit where it is read to. Invalid: it is not there, or is more or less. */
static hid_t open_attribute(hid_t object, const char *name)
{
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : H5I_INVALID_HID;
    if (attribute < 0)
        return attribute;
    hid_t space = H5Aget_space(attribute);
    bool one = H5Sget_simple_extent_npoints(space) == 1;
    H5Sclose(space);
    if (one)
        return attribute;
    H5Aclose(attribute);
    return H5I_INVALID_HID;
}

/* malloced; NULL: it is not there, or no text */
static char *get_text(hid_t object, const char *name)
{
    char *text = NULL;
    hid_t attribute = open_attribute(object, name);
    if (attribute < 0)
        return NULL;
    hid_t type = H5Aget_type(attribute);
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
        (text = calloc(H5Tget_size(type) + 1, 1)) != NULL && H5Aread(attribute, type, text) < 0) {
        free(text);
        text = NULL;
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return text;
}

static bool get_number(hid_t object, const char *name, hid_t type, void *value)
{
    hid_t attribute = open_attribute(object, name);
    bool good = attribute >= 0 && H5Aread(attribute, type, value) >= 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    return good;
}

/* -- words of enums -- */

static const char *const synchronizations[] = { [DITTO_ON_WRITE] = "ON_WRITE", [DITTO_ON_READ] = "ON_READ" };
static const char *const aggregations[] = { "NONE", "SUM", "MEAN",
                                            "ONLY_FIRST_REPLICA" }; /* from DITTO_AGGREGATE_NONE on */

static int find_word(const char *const *words, int first, int end, const char *word)
{
    for (int i = first; word != NULL && i < end; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

static ditto_dtype find_dtype(const char *word)
{
    for (int i = DITTO_F16; word != NULL && i <= DITTO_BOOL; i++)
        if (strcmp(ditto_dtype_name((ditto_dtype)i), word) == 0)
            return (ditto_dtype)i;
    return (ditto_dtype)0;
}

/* -- writing -- */

static hid_t space_of(const ditto_tensor *spec)
{
    hsize_t shape[DITTO_MAX_RANK];
    for (uint32_t i = 0; i < spec->rank; i++)
        shape[i] = spec->shape[i];
    return spec->rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple((int)spec->rank, shape, NULL);
}

static bool describe_entry(hid_t set, const struct dti_entry *entry)
{
    int8_t trainable = entry->trainable;
    if (entry->own)
        return put_text(set, "dtype", ditto_dtype_name(entry->spec.dtype)) && put_text(set, "kind", "data");
    return put_text(set, "dtype", ditto_dtype_name(entry->spec.dtype)) &&
           put_text(set, "synchronization", synchronizations[entry->synchronization]) &&
           put_text(set, "aggregation", aggregations[entry->aggregation - DITTO_AGGREGATE_NONE]) &&
           put_attribute(set, "trainable", H5T_NATIVE_INT8, &trainable);
}

/* In one row, with a place in the file from the beginning, and nothing in it. */
static bool create_entry(hid_t file, struct dti_entry *entry)
{
    hid_t type = type_of(entry->spec.dtype), space = space_of(&entry->spec);
    hid_t link = H5Pcreate(H5P_LINK_CREATE), layout = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_create_intermediate_group(link, 1);
    H5Pset_layout(layout, H5D_CONTIGUOUS);
    H5Pset_alloc_time(layout, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(layout, H5D_FILL_TIME_NEVER);
    hid_t set = H5Dcreate2(file, entry->name, type, space, link, layout, H5P_DEFAULT);
    bool good = set >= 0 && describe_entry(set, entry);
    entry->offset = 0;
    if (good && ditto_tensor_bytes(&entry->spec) != 0) {
        haddr_t offset = H5Dget_offset(set);
        good = offset != HADDR_UNDEF;
        entry->offset = offset;
    }
    if (set >= 0)
        good = H5Dclose(set) >= 0 && good;
    H5Pclose(layout);
    H5Pclose(link);
    H5Sclose(space);
    H5Tclose(type);
    return good;
}

static bool fill_file(hid_t file, struct dti_contents *c)
{
    bool good =
        put_text(file, "ditto_version", c->version) && put_attribute(file, "ditto_step", H5T_NATIVE_INT64, &c->step);
    for (size_t i = 0; good && i < c->attributes; i++)
        good = put_user_attribute(file, &c->attribute[i]);
    for (size_t i = 0; good && i < c->entries; i++)
        good = create_entry(file, &c->entry[i]);
    return good;
}

ditto_status dti_hdf5_create(const char *path, struct dti_contents *contents)
{
    struct visit visit = go_in();
    hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
    ditto_status status = DITTO_OK;
    H5Pset_userblock(creation, DTI_USER_BLOCK);
    H5Pset_alignment(access, ALIGN_FROM, ALIGNMENT);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    ignore_locks(access);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    if (file < 0 || !fill_file(file, contents))
        status = fail(DITTO_ERR_IO, path, "write");
    if (file >= 0 && H5Fclose(file) < 0 && status == DITTO_OK)
        status = fail(DITTO_ERR_IO, path, "close the file");
    H5Pclose(access);
    H5Pclose(creation);
    go_out(visit);
    return status;
}

/* -- reading -- */

struct dti_hdf5 {
    hid_t file;
    char *path;
};

struct looking {
    const char *path;
    struct dti_contents *contents;
    ditto_status status;
};

static bool read_space(hid_t set, ditto_tensor *spec)
{
    hsize_t shape[H5S_MAX_RANK];
    hid_t space = H5Dget_space(set);
    int rank = H5Sget_simple_extent_ndims(space);
    bool good = rank >= 0 && rank <= DITTO_MAX_RANK && H5Sget_simple_extent_dims(space, shape, NULL) >= 0 &&
                H5Sget_simple_extent_type(space) == (rank == 0 ? H5S_SCALAR : H5S_SIMPLE);
    spec->rank = good ? (uint32_t)rank : 0;
    for (uint32_t i = 0; i < spec->rank; i++)
        spec->shape[i] = (size_t)shape[i];
    H5Sclose(space);
    return good;
}

/* Of a variable: how it is kept equal. */
static bool describe_variable(hid_t set, struct dti_entry *entry)
{
    char *synchronization = get_text(set, "synchronization"), *aggregation = get_text(set, "aggregation");
    int8_t trainable = 0;
    int sync = find_word(synchronizations, DITTO_ON_WRITE, DITTO_ON_READ + 1, synchronization);
    int how = find_word(aggregations, 0, 4, aggregation);
    bool good = get_number(set, "trainable", H5T_NATIVE_INT8, &trainable) && sync >= 0 && how >= 0;
    entry->synchronization = (ditto_synchronization)sync;
    entry->aggregation = (ditto_aggregation)(DITTO_AGGREGATE_NONE + how);
    entry->trainable = trainable != 0;
    free(synchronization);
    free(aggregation);
    return good;
}

/* A dataset of ours; false: it is something else, or can't be. */
static bool describe_set(hid_t set, struct dti_entry *entry)
{
    char *dtype = get_text(set, "dtype"), *kind = get_text(set, "kind");
    size_t count;
    entry->spec.dtype = find_dtype(dtype);
    entry->own = kind != NULL && strcmp(kind, "data") == 0;
    bool good = entry->spec.dtype != 0 && (entry->own || describe_variable(set, entry)) &&
                read_space(set, &entry->spec) && dti_tensor_check(&entry->spec, &count) == DITTO_OK;
    free(dtype);
    free(kind);
    return good;
}

static herr_t look_at(hid_t root, const char *name, const H5O_info_t *info, void *context)
{
    struct looking *l = context;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    struct dti_entry *entry = dti_contents_add(l->contents, name);
    hid_t set = entry != NULL ? H5Dopen2(root, name, H5P_DEFAULT) : H5I_INVALID_HID;
    if (entry == NULL)
        l->status = DITTO_ERR_NO_MEMORY;
    else if (set < 0 || !describe_set(set, entry))
        l->status = DTI_FAIL(DITTO_ERR_CORRUPT, "%s: the dataset \"%.100s\" is none that ditto writes", l->path, name);
    if (set >= 0)
        H5Dclose(set);
    return l->status == DITTO_OK ? 0 : 1; /* 1: ends the walk */
}

static herr_t look_at_attribute(hid_t root, const char *name, const H5A_info_t *info, void *context)
{
    struct looking *l = context;
    ditto_attribute a = { .name = name };
    char *text = NULL;
    (void)info;
    if (strncmp(name, "ditto_", 6) == 0)
        return 0;
    hid_t attribute = H5Aopen(root, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    H5T_class_t class = H5Tget_class(type);
    H5Tclose(type);
    H5Aclose(attribute);
    bool good = false;
    if (class == H5T_STRING && (text = get_text(root, name)) != NULL) {
        a.kind = DITTO_ATTRIBUTE_TEXT;
        a.text = text;
        good = true;
    } else if (class == H5T_INTEGER) {
        a.kind = DITTO_ATTRIBUTE_INTEGER;
        good = get_number(root, name, H5T_NATIVE_INT64, &a.integer);
    } else if (class == H5T_FLOAT) {
        a.kind = DITTO_ATTRIBUTE_REAL;
        good = get_number(root, name, H5T_NATIVE_DOUBLE, &a.real);
    }
    if (good)
        l->status = dti_contents_add_attribute(l->contents, &a);
    free(text);
    return l->status == DITTO_OK ? 0 : 1;
}

static ditto_status read_contents(hid_t file, const char *path, struct dti_contents *c)
{
    struct looking looking = { path, c, DITTO_OK };
    c->version = get_text(file, "ditto_version");
    if (c->version == NULL || !get_number(file, "ditto_step", H5T_NATIVE_INT64, &c->step))
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is an HDF5 file without ditto's version and step", path);
    if (H5Aiterate2(file, H5_INDEX_NAME, H5_ITER_INC, NULL, look_at_attribute, &looking) < 0 ||
        (looking.status == DITTO_OK &&
         H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, look_at, &looking, H5O_INFO_BASIC) < 0))
        return fail(DITTO_ERR_CORRUPT, path, "list what is in the file");
    return looking.status;
}

ditto_status dti_hdf5_open(int fd, const char *path, struct dti_hdf5 **out, struct dti_contents *contents)
{
    char name[32];
    struct dti_hdf5 *file = calloc(1, sizeof *file);
    if (file == NULL || (file->path = strdup(path)) == NULL) {
        free(file);
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory to open %s", path);
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd); /* the file that was checked, whatever the path names now */
    struct visit visit = go_in();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    ignore_locks(access);
    file->file = H5Fopen(name, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    ditto_status status =
        file->file < 0 ? fail(DITTO_ERR_CORRUPT, path, "open the file") : read_contents(file->file, path, contents);
    go_out(visit);
    if (status == DITTO_OK)
        *out = file;
    else
        dti_hdf5_close(file);
    return status;
}

ditto_status dti_hdf5_read(struct dti_hdf5 *file, const struct dti_entry *entry, void *dst)
{
    struct visit visit = go_in();
    hid_t type = type_of(entry->spec.dtype), set = H5Dopen2(file->file, entry->name, H5P_DEFAULT);
    bool good = set >= 0 && H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, dst) >= 0;
    ditto_status status = good ? DITTO_OK : fail(DITTO_ERR_CORRUPT, file->path, "read a dataset");
    if (set >= 0)
        H5Dclose(set);
    H5Tclose(type);
    go_out(visit);
    return status;
}

void dti_hdf5_close(struct dti_hdf5 *file)
{
    if (file->file >= 0) {
        struct visit visit = go_in();
        H5Fclose(file->file);
        go_out(visit);
    }
    free(file->path);
    free(file);
}
