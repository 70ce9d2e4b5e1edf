/* src/vars/checkpoint/hdf5/hdf5_read.c - reads the HDF5 part of a checkpoint; see hdf5.h.
 *
 * The file may contain any bytes, so every address and length is checked before it is used. In a file that
 * ditto wrote, no two structures or values share bytes, and each structure is read once. The structures and
 * values together are therefore not longer than the file. A file whose structures refer to each other in
 * circles, or whose values overlap, exceeds that limit and is refused. The memory for the paths of entries
 * and groups is also limited in proportion to the length of the file. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "vars/checkpoint/files/checkpoint_files.h"
#include "vars/checkpoint/files/little_endian.h"
#include "vars/checkpoint/hdf5/hdf5.h"
#include "vars/checkpoint/hdf5/hdf5_format.h"

#include <stdlib.h>
#include <string.h>

/* The limit of bytes of paths for each byte of the file. A dataset that ditto writes occupies at least 248
 * bytes of the file, and a group occupies more. The path of either has at most
 * DITTO_MAX_CHECKPOINT_NAME_BYTES + 1 bytes, which is 17 times as many. */
#define PATH_BYTES 20

struct pending_group {
    char *path; /* "" for the root; the others end with "/" */
    uint64_t tree, heap;
};

struct hdf5_reader {
    int fd;
    const char *path;
    struct dti_contents *contents;

    /* The length of the HDF5 part. Addresses are below it. */
    uint64_t end;

    /* The bytes that the structures and values which were not read yet may have together. If they have more,
     * some of them overlap. */
    uint64_t left;

    /* The bytes that paths may still occupy. */
    uint64_t path_left;

    /* The largest numbers of symbols and of children in a node, from the superblock. */
    uint64_t most_symbols, most_children;

    /* Groups that have been found and not been read yet. */
    struct pending_group *pending;
    size_t pendings;
};

static ditto_status no_memory(const struct hdf5_reader *r)
{
    return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to read %s", r->path);
}

static ditto_status corrupt(const struct hdf5_reader *r, const char *what)
{
    return DTI_FAIL(DITTO_ERR_CORRUPT, "%s: its HDF5 part is wrong: %s", r->path, what);
}

/* -- Bytes -- */

static ditto_status get(struct hdf5_reader *r, uint64_t address, size_t bytes, void *to)
{
    if (address > r->end || bytes > r->end - address)
        return corrupt(r, "an address points past its end");
    if (bytes > r->left)
        return corrupt(r, "its structures refer to each other in circles");
    r->left -= bytes;
    return dti_checkpoint_file_read(r->fd, to, bytes, DTI_USER_BLOCK + address, r->path);
}

/* Reads bytes into new memory, and adds a zero after them. The caller frees *out, which is NULL after an
 * error. */
static ditto_status get_block(struct hdf5_reader *r, uint64_t address, uint64_t bytes, unsigned char **out)
{
    *out = NULL;
    if (bytes > r->end)
        return corrupt(r, "a length is more than the file has");
    unsigned char *block = malloc((size_t)bytes + 1);
    if (block == NULL)
        return no_memory(r);
    block[bytes] = 0;
    ditto_status status = get(r, address, (size_t)bytes, block);
    if (status == DITTO_OK)
        *out = block;
    else
        free(block);
    return status;
}

/* -- Object headers -- */

struct message {
    unsigned type;

    /* True if the contents are in another object, such as a committed datatype. */
    bool shared;

    const unsigned char *contents;
    size_t bytes; /* of the contents */
};

struct object {
    unsigned char **block; /* [blocks] the memory of the messages */
    size_t blocks;
    struct message *message; /* [messages] */
    size_t messages;
};

static void free_object(struct object *o)
{
    for (size_t i = 0; i < o->blocks; i++)
        free(o->block[i]);
    free(o->block);
    free(o->message);
}

static ditto_status add_block(struct hdf5_reader *r, struct object *o, uint64_t address, uint64_t bytes)
{
    unsigned char **grown = realloc(o->block, (o->blocks + 1) * sizeof *grown);
    if (grown == NULL)
        return no_memory(r);
    o->block = grown;
    DTI_TRY(get_block(r, address, bytes, &o->block[o->blocks]));
    const unsigned char *block = o->block[o->blocks++];
    for (size_t at = 0; bytes - at >= DTI_H5_MESSAGE_BYTES;) {
        struct message m = { .type = (unsigned)dti_get_number(block + at, 2),
                             .shared = (block[at + 4] & 2) != 0,
                             .contents = block + at + DTI_H5_MESSAGE_BYTES,
                             .bytes = (size_t)dti_get_number(block + at + 2, 2) };
        at += DTI_H5_MESSAGE_BYTES;
        if (m.bytes > bytes - at)
            return corrupt(r, "a message is longer than its object header");
        at += m.bytes;
        if ((o->messages & (o->messages - 1)) == 0) { /* 0 or a power of two, so the array is full */
            size_t capacity = o->messages == 0 ? 1 : o->messages * 2;
            struct message *longer = realloc(o->message, capacity * sizeof *longer);
            if (longer == NULL)
                return no_memory(r);
            o->message = longer;
        }
        o->message[o->messages++] = m;
    }
    return DITTO_OK;
}

/* Reads an object header. The caller calls free_object, also after an error. */
static ditto_status get_object(struct hdf5_reader *r, uint64_t address, struct object *o)
{
    unsigned char header[DTI_H5_HEADER_BYTES];
    *o = (struct object){ .blocks = 0 };
    DTI_TRY(get(r, address, sizeof header, header));
    if (memcmp(header, "OHDR", 4) == 0)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "%s: its HDF5 part has object headers of version 2, which no version of ditto up to "
                        "this one writes",
                        r->path);
    if (header[0] != 1)
        return corrupt(r, "an address of an object header points to something else");
    DTI_TRY(add_block(r, o, address + sizeof header, dti_get_number(header + 8, 4)));
    for (size_t i = 0; i < o->messages; i++) {
        struct message m = o->message[i];
        if (m.type != DTI_H5_CONTINUATION)
            continue;
        if (m.bytes < 16 || dti_get_number(m.contents + 8, 8) < DTI_H5_MESSAGE_BYTES)
            return corrupt(r, "a continuation of an object header is empty");
        DTI_TRY(add_block(r, o, dti_get_number(m.contents, 8), dti_get_number(m.contents + 8, 8)));
    }
    return DITTO_OK;
}

/* Returns the contents of the first message of the type that is not shared and has at least `bytes` bytes.
 * Returns NULL if there is none. */
static const unsigned char *find_message(const struct object *o, unsigned type, size_t bytes)
{
    for (size_t i = 0; i < o->messages; i++)
        if (o->message[i].type == type && !o->message[i].shared && o->message[i].bytes >= bytes)
            return o->message[i].contents;
    return NULL;
}

/* -- Attributes -- */

struct attribute {
    const char *name; /* terminated */
    const unsigned char *type;
    size_t type_bytes;
    const unsigned char *value; /* [bytes], one element */
    size_t bytes;
};

/* Returns true if a dataspace message is of a version that ditto writes and has one element. */
static bool has_one_element(const unsigned char *space, size_t bytes)
{
    if (bytes < 8 || space[0] != 1 || bytes < 8 + (size_t)space[1] * 8)
        return false;
    for (unsigned i = 0; i < space[1]; i++)
        if (dti_get_number(space + 8 + i * 8, 8) != 1)
            return false;
    return true;
}

/* Returns false if the message is not an attribute of one element in the form that ditto writes. */
static bool read_attribute(const struct message *m, struct attribute *out)
{
    if (m->type != DTI_H5_ATTRIBUTE || m->shared || m->bytes < 8 || m->contents[0] != 1)
        return false;
    size_t name_bytes = (size_t)dti_get_number(m->contents + 2, 2),
           type_bytes = (size_t)dti_get_number(m->contents + 4, 2),
           space_bytes = (size_t)dti_get_number(m->contents + 6, 2);
    size_t type_at = 8 + dti_h5_padded(name_bytes), space_at = type_at + dti_h5_padded(type_bytes),
           value_at = space_at + dti_h5_padded(space_bytes);
    if (value_at > m->bytes || type_bytes < 8 || memchr(m->contents + 8, 0, name_bytes) == NULL ||
        !has_one_element(m->contents + space_at, space_bytes))
        return false;
    *out = (struct attribute){ .name = (const char *)m->contents + 8,
                               .type = m->contents + type_at,
                               .type_bytes = type_bytes,
                               .value = m->contents + value_at,
                               .bytes = (size_t)dti_get_number(m->contents + type_at + 4, 4) };
    return out->bytes <= m->bytes - value_at;
}

static bool find_attribute(const struct object *o, const char *name, struct attribute *out)
{
    for (size_t i = 0; i < o->messages; i++)
        if (read_attribute(&o->message[i], out) && strcmp(out->name, name) == 0)
            return true;
    return false;
}

static bool has_type(const struct attribute *a, ditto_dtype dtype)
{
    unsigned char type[DTI_H5_TYPE_BYTES];
    size_t bytes = dti_h5_type(dtype, type);
    return a->type_bytes >= bytes && memcmp(a->type, type, bytes) == 0;
}

/* Returns true if the attribute is a text of fixed length, with any padding. */
static bool is_text(const struct attribute *a)
{
    return a->type[0] == 0x13;
}

static bool get_number(const struct object *o, const char *name, ditto_dtype dtype, void *value)
{
    struct attribute a;
    if (!find_attribute(o, name, &a) || !has_type(&a, dtype))
        return false;
    memcpy(value, a.value, ditto_dtype_bytes(dtype));
    return true;
}

static bool is_word(const struct attribute *a, const char *word)
{
    size_t length = strnlen((const char *)a->value, a->bytes);
    return is_text(a) && length == strlen(word) && memcmp(a->value, word, length) == 0;
}

/* Returns the index of the word that the attribute is. Returns -1 if it is none of them or does not exist. */
static int get_word(const struct object *o, const char *name, const char *const *words, int count)
{
    struct attribute a;
    if (!find_attribute(o, name, &a))
        return -1;
    for (int i = 0; i < count; i++)
        if (is_word(&a, words[i]))
            return i;
    return -1;
}

static ditto_status copy_text(const struct hdf5_reader *r, const struct attribute *a, char **out)
{
    *out = strndup((const char *)a->value, a->bytes);
    return *out != NULL ? DITTO_OK : no_memory(r);
}

/* Adds an attribute of the user to the contents. Messages that are not attributes of the user, and the
 * library's own attributes, are ignored. */
static ditto_status add_user_attribute(const struct hdf5_reader *r, const struct message *m)
{
    struct attribute a;
    char *text = NULL;
    if (!read_attribute(m, &a) || strncmp(a.name, "ditto_", 6) == 0)
        return DITTO_OK;
    ditto_attribute user = { .name = a.name };
    if (is_text(&a)) {
        DTI_TRY(copy_text(r, &a, &text));
        user.kind = DITTO_ATTRIBUTE_TEXT;
        user.text = text;
    } else if (has_type(&a, DITTO_I64)) {
        user.kind = DITTO_ATTRIBUTE_INTEGER;
        memcpy(&user.integer, a.value, 8);
    } else if (has_type(&a, DITTO_F64)) {
        user.kind = DITTO_ATTRIBUTE_REAL;
        memcpy(&user.real, a.value, 8);
    }
    ditto_status status = user.kind != 0 ? dti_contents_add_attribute(r->contents, &user) : DITTO_OK;
    free(text);
    return status;
}

static ditto_status read_root_attributes(const struct hdf5_reader *r, const struct object *root)
{
    struct attribute version;
    if (!find_attribute(root, "ditto_version", &version) || !is_text(&version) ||
        !get_number(root, "ditto_step", DITTO_I64, &r->contents->step))
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s is an HDF5 file without ditto's version and step", r->path);
    DTI_TRY(copy_text(r, &version, &r->contents->version));
    for (size_t i = 0; i < root->messages; i++)
        DTI_TRY(add_user_attribute(r, &root->message[i]));
    return DITTO_OK;
}

/* -- Datasets -- */

static ditto_dtype get_dtype(const struct object *o)
{
    struct attribute a;
    if (find_attribute(o, "dtype", &a))
        for (int i = 1; i <= DTI_NUM_DTYPES; i++)
            if (is_word(&a, ditto_dtype_name((ditto_dtype)i)))
                return (ditto_dtype)i;
    return (ditto_dtype)0;
}

/* Reads the attributes of a variable. Returns false if one is missing or wrong. */
static bool describe_variable(const struct object *o, struct dti_contents_entry *entry)
{
    int8_t trainable = 0;
    int synchronization = get_word(o, "synchronization", dti_h5_synchronizations, 2),
        aggregation = get_word(o, "aggregation", dti_h5_aggregations, 4);
    bool is_complete = get_number(o, "trainable", DITTO_I8, &trainable) && synchronization >= 0 &&
                       aggregation >= 0;
    entry->synchronization = (ditto_synchronization)(DITTO_ON_WRITE + synchronization);
    entry->aggregation = (ditto_aggregation)(DITTO_AGGREGATE_NONE + aggregation);
    entry->trainable = trainable != 0;
    return is_complete;
}

static bool read_shape(const struct object *o, ditto_tensor *spec)
{
    const unsigned char *space = find_message(o, DTI_H5_DATASPACE, 8);
    if (space == NULL || space[0] != 1 || space[1] > DITTO_MAX_RANK)
        return false;
    spec->rank = space[1];
    space = find_message(o, DTI_H5_DATASPACE, 8 + (size_t)spec->rank * 8);
    for (uint32_t i = 0; space != NULL && i < spec->rank; i++)
        spec->shape[i] = (size_t)dti_get_number(space + 8 + i * 8, 8);
    size_t bytes;
    return space != NULL && dti_tensor_check(spec, &bytes) == DITTO_OK;
}

/* Reads the offset of the values. Returns false if they are not contiguous, are not inside the file, or are
 * so long that they must overlap bytes that were read before. */
static bool read_location(struct hdf5_reader *r, const struct object *o, struct dti_contents_entry *entry)
{
    const unsigned char *layout = find_message(o, DTI_H5_LAYOUT, 18);
    if (layout == NULL || layout[0] != 3 || layout[1] != 1)
        return false;
    uint64_t address = dti_get_number(layout + 2, 8), bytes = ditto_tensor_bytes(&entry->spec);
    if (bytes == 0)
        return true;
    if (address > r->end || bytes > r->end - address || dti_get_number(layout + 10, 8) != bytes ||
        bytes > r->left)
        return false;
    r->left -= bytes;
    entry->offset = DTI_USER_BLOCK + address;
    return true;
}

static bool has_own_datatype(const struct object *o, ditto_dtype dtype)
{
    unsigned char type[DTI_H5_TYPE_BYTES];
    size_t bytes = dti_h5_type(dtype, type);
    const unsigned char *found = find_message(o, DTI_H5_DATATYPE, bytes);
    return found != NULL && memcmp(found, type, bytes) == 0;
}

static ditto_status add_dataset(struct hdf5_reader *r, const struct object *o, const char *name)
{
    static const char *const kinds[] = { "data" };
    struct dti_contents_entry *entry = dti_contents_add(r->contents, name);
    if (entry == NULL)
        return DITTO_ERR_NO_MEMORY;
    entry->spec.dtype = get_dtype(o);
    entry->own = get_word(o, "kind", kinds, 1) == 0;
    if (entry->spec.dtype == 0 || (!entry->own && !describe_variable(o, entry)) ||
        !has_own_datatype(o, entry->spec.dtype) || !read_shape(o, &entry->spec) ||
        !read_location(r, o, entry))
        return DTI_FAIL(DITTO_ERR_CORRUPT, "%s: the dataset \"%.100s\" is not one that ditto writes", r->path,
                        name);
    return DITTO_OK;
}

/* -- Groups -- */

/* Adds a group that will be read later. Takes ownership of `path`, also after an error. */
static ditto_status add_pending(struct hdf5_reader *r, char *path, const unsigned char *group)
{
    struct pending_group *grown = realloc(r->pending, (r->pendings + 1) * sizeof *grown);
    if (grown == NULL) {
        free(path);
        return no_memory(r);
    }
    r->pending = grown;
    r->pending[r->pendings++] = (struct pending_group){ path, dti_get_number(group, 8),
                                                        dti_get_number(group + 8, 8) };
    return DITTO_OK;
}

/* Joins the path of a group and the name of a member. The path of a group, unless it is the root, ends with
 * "/". The caller frees *out. */
static ditto_status join(struct hdf5_reader *r, const char *group_path, const char *name, bool is_group,
                         char **out)
{
    size_t before = strlen(group_path), length = strlen(name);
    if (before + length > DITTO_MAX_CHECKPOINT_NAME_BYTES)
        return corrupt(r, "a name is longer than any that ditto writes");
    if (before + length + 1 > r->path_left)
        return corrupt(r, "its names are longer than its length allows");
    r->path_left -= before + length + 1;
    char *path = malloc(before + length + 2);
    if (path == NULL)
        return no_memory(r);
    memcpy(path, group_path, before);
    memcpy(path + before, name, length);
    memcpy(path + before + length, "/", 2);
    if (!is_group)
        path[before + length] = '\0';
    *out = path;
    return DITTO_OK;
}

/* Adds a group to the pending groups, or a dataset to the contents. Other objects are ignored. */
static ditto_status add_object(struct hdf5_reader *r, const struct object *o, const char *group_path,
                               const char *name)
{
    char *path = NULL;
    const unsigned char *group = find_message(o, DTI_H5_GROUP, 16);
    bool is_dataset = find_message(o, DTI_H5_LAYOUT, 0) != NULL &&
                      find_message(o, DTI_H5_DATASPACE, 0) != NULL;
    if (group == NULL && !is_dataset)
        return DITTO_OK;
    DTI_TRY(join(r, group_path, name, group != NULL, &path));
    if (group != NULL)
        return add_pending(r, path, group);
    ditto_status status = add_dataset(r, o, path);
    free(path);
    return status;
}

/* The part of a group's local heap that contains the names of its members. */
struct names {
    unsigned char *heap;
    uint64_t bytes;
};

static ditto_status read_symbol(struct hdf5_reader *r, const unsigned char *symbol, const struct names *names,
                                const char *group_path)
{
    struct object object;
    uint64_t offset = dti_get_number(symbol, 8);
    if (dti_get_number(symbol + 16, 4) > 1) /* a symbolic link, which ditto does not write */
        return DITTO_OK;
    if (offset >= names->bytes)
        return corrupt(r, "a name is outside its heap");
    const char *name = (const char *)names->heap + offset;
    if (*name == '\0' || strchr(name, '/') != NULL)
        return corrupt(r, "a name is empty, or has a \"/\"");
    ditto_status status = get_object(r, dti_get_number(symbol + 8, 8), &object);
    if (status == DITTO_OK)
        status = add_object(r, &object, group_path, name);
    free_object(&object);
    return status;
}

static ditto_status read_symbols(struct hdf5_reader *r, uint64_t address, const struct names *names,
                                 const char *group_path)
{
    unsigned char header[DTI_H5_SYMBOLS_BYTES], *symbols;
    DTI_TRY(get(r, address, sizeof header, header));
    uint64_t count = dti_get_number(header + 6, 2);
    if (memcmp(header, "SNOD\1", 5) != 0 || count > r->most_symbols)
        return corrupt(r, "an address of a symbol node points to something else");
    DTI_TRY(get_block(r, address + sizeof header, count * DTI_H5_SYMBOL_BYTES, &symbols));
    ditto_status status = DITTO_OK;
    for (uint64_t i = 0; status == DITTO_OK && i < count; i++)
        status = read_symbol(r, symbols + i * DTI_H5_SYMBOL_BYTES, names, group_path);
    free(symbols);
    return status;
}

/* Reads a node of a tree and all below it. `level` is the level that the node must have, or -1 for a root,
 * which may have any level. Levels have one byte and decrease, so the recursion ends. */
static ditto_status read_tree(struct hdf5_reader *r, uint64_t address, int level, const struct names *names,
                              const char *group_path)
{
    unsigned char header[DTI_H5_TREE_BYTES], *children;
    DTI_TRY(get(r, address, sizeof header, header));
    uint64_t count = dti_get_number(header + 6, 2);
    if (memcmp(header, "TREE\0", 5) != 0 || count > r->most_children || (level >= 0 && header[5] != level))
        return corrupt(r, "an address of a tree's node points to something else");
    DTI_TRY(get_block(r, address + sizeof header, 8 + count * 16, &children));
    ditto_status status = DITTO_OK;
    for (uint64_t i = 0; status == DITTO_OK && i < count; i++) {
        uint64_t child = dti_get_number(children + 8 + i * 16, 8); /* each child comes after a key */
        status = header[5] > 0 ? read_tree(r, child, header[5] - 1, names, group_path)
                               : read_symbols(r, child, names, group_path);
    }
    free(children);
    return status;
}

static ditto_status read_group(struct hdf5_reader *r, const struct pending_group *group)
{
    unsigned char heap[DTI_H5_HEAP_BYTES];
    struct names names;
    DTI_TRY(get(r, group->heap, sizeof heap, heap));
    if (memcmp(heap, "HEAP\0", 5) != 0)
        return corrupt(r, "an address of a heap points to something else");
    names.bytes = dti_get_number(heap + 8, 8);
    DTI_TRY(get_block(r, dti_get_number(heap + 24, 8), names.bytes, &names.heap));
    ditto_status status = read_tree(r, group->tree, -1, &names, group->path);
    free(names.heap);
    return status;
}

/* -- The whole file -- */

static ditto_status read_superblock(struct hdf5_reader *r, uint64_t *root)
{
    unsigned char block[DTI_H5_SUPERBLOCK_BYTES];
    DTI_TRY(get(r, 0, sizeof block, block));
    if (memcmp(block, DTI_H5_SIGNATURE, 8) != 0)
        return corrupt(r, "its first bytes are different");
    if (block[8] != 0)
        return DTI_FAIL(DITTO_ERR_UNSUPPORTED,
                        "%s: its HDF5 part has a superblock of version %u, but every version of ditto up to "
                        "this one writes version 0",
                        r->path, block[8]);
    if (block[13] != 8 || block[14] != 8 || dti_get_number(block + DTI_H5_AT_BASE, 8) != DTI_USER_BLOCK ||
        dti_get_number(block + DTI_H5_AT_END, 8) > DTI_USER_BLOCK + r->end)
        return corrupt(r, "its superblock does not fit the file");
    r->most_symbols = 2 * dti_get_number(block + DTI_H5_AT_LEAF_K, 2);
    r->most_children = 2 * dti_get_number(block + DTI_H5_AT_INTERNAL_K, 2);
    *root = dti_get_number(block + DTI_H5_AT_ROOT + 8, 8);
    return DITTO_OK;
}

static ditto_status read_root(struct hdf5_reader *r, uint64_t address)
{
    struct object root;
    ditto_status status = get_object(r, address, &root);
    if (status == DITTO_OK)
        status = read_root_attributes(r, &root);
    if (status == DITTO_OK) {
        const unsigned char *group = find_message(&root, DTI_H5_GROUP, 16);
        char *path = group != NULL ? strdup("") : NULL;
        status = group == NULL  ? corrupt(r, "its root is not a group")
                 : path == NULL ? no_memory(r)
                                : add_pending(r, path, group);
    }
    free_object(&root);
    return status;
}

static ditto_status read_all(struct hdf5_reader *r)
{
    uint64_t root;
    DTI_TRY(read_superblock(r, &root));
    DTI_TRY(read_root(r, root));
    ditto_status status = DITTO_OK;
    while (status == DITTO_OK && r->pendings > 0) {
        struct pending_group group = r->pending[--r->pendings];
        status = read_group(r, &group);
        free(group.path);
    }
    DTI_TRY(status);
    dti_contents_sort(r->contents);
    for (size_t i = 1; i < r->contents->entries; i++)
        if (strcmp(r->contents->entry[i - 1].name, r->contents->entry[i].name) == 0)
            return corrupt(r, "two datasets have one name");
    return DITTO_OK;
}

ditto_status dti_hdf5_list(int fd, uint64_t file_bytes, const char *path, struct dti_contents *contents)
{
    struct hdf5_reader r = { .fd = fd, .path = path, .contents = contents };
    *contents = (struct dti_contents){ .step = 0 };
    r.end = r.left = file_bytes - DTI_USER_BLOCK;
    r.path_left = PATH_BYTES * r.end;
    ditto_status status = read_all(&r);
    while (r.pendings > 0)
        free(r.pending[--r.pendings].path);
    free(r.pending);
    return status;
}
