/* src/vars/checkpoint/hdf5/hdf5_write.c - lays out the HDF5 part of a checkpoint in memory; see hdf5.h.
 *
 * The superblock comes first, directly after the user block. Each group comes after its members, which are
 * datasets and groups, so that their addresses are known when the group is written. The values come last.
 * Their addresses are stored in their datasets at the end. */
#include "base/errors/status.h"
#include "vars/checkpoint/files/checkpoint_files.h"
#include "vars/checkpoint/files/little_endian.h"
#include "vars/checkpoint/hdf5/hdf5.h"
#include "vars/checkpoint/hdf5/hdf5_format.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN_FROM ((uint64_t)64 << 10) /* values of at least this size begin on a page */
#define PAGE       ((uint64_t)4096)

/* Half of the capacity of a node of a tree, and of a symbol node. The HDF5 library uses these numbers by
 * default. */
enum { INTERNAL_K = 16, LEAF_K = 4 };
enum {
    CHILDREN = 2 * INTERNAL_K,
    SYMBOLS = 2 * LEAF_K,
    TREE_BYTES = DTI_H5_TREE_BYTES + CHILDREN * 8 + (CHILDREN + 1) * 8,
    SYMBOL_NODE_BYTES = DTI_H5_SYMBOLS_BYTES + SYMBOLS * DTI_H5_SYMBOL_BYTES,
};
#define NO_FREE_BLOCKS 1 /* means that a heap has no free blocks */

#define MOST_MESSAGE_BYTES 65528u /* the largest multiple of 8 in two bytes */
#define MOST_MESSAGES      65535u

struct writer {
    unsigned char *bytes;
    size_t size, capacity;

    struct dti_contents_entry *const *entry; /* sorted by path */
    const struct dti_contents *contents;
};

static ditto_status no_memory(void)
{
    return DTI_FAIL_ERRNO(DITTO_ERR_NO_MEMORY, ENOMEM, "no memory to lay out a checkpoint");
}

/* -- Bytes -- */

/* Appends `bytes` zeros, rounded up to a multiple of 8, and returns a pointer to them. Returns NULL, with an
 * error recorded, if there is no memory. */
static unsigned char *add(struct writer *w, size_t bytes)
{
    bytes = dti_h5_padded(bytes);
    if (bytes > w->capacity - w->size) {
        size_t capacity = w->capacity * 2 + bytes + 4096;
        unsigned char *grown = realloc(w->bytes, capacity);
        if (grown == NULL) {
            (void)no_memory();
            return NULL;
        }
        w->bytes = grown;
        w->capacity = capacity;
    }
    unsigned char *at = w->bytes + w->size;
    memset(at, 0, bytes);
    w->size += bytes;
    return at;
}

static ditto_status add_message(struct writer *w, int type, bool constant, size_t bytes, unsigned char **out)
{
    unsigned char *at = add(w, DTI_H5_MESSAGE_BYTES + dti_h5_padded(bytes));
    if (at == NULL)
        return DITTO_ERR_NO_MEMORY;
    dti_put_number(at, (uint64_t)type, 2);
    dti_put_number(at + 2, dti_h5_padded(bytes), 2);
    at[4] = constant;
    *out = at + DTI_H5_MESSAGE_BYTES;
    return DITTO_OK;
}

/* -- Object headers -- */

/* Appends the first bytes of a header. Its messages are appended after it, and then finish_header is called
 * with their number. */
static ditto_status begin_header(struct writer *w, uint64_t *address)
{
    *address = w->size;
    return add(w, DTI_H5_HEADER_BYTES) != NULL ? DITTO_OK : DITTO_ERR_NO_MEMORY;
}

static void finish_header(struct writer *w, uint64_t address, size_t messages)
{
    unsigned char *at = w->bytes + address;
    at[0] = 1; /* version */
    dti_put_number(at + 2, messages, 2);
    dti_put_number(at + 4, 1, 4); /* links to the object */
    dti_put_number(at + 8, w->size - address - DTI_H5_HEADER_BYTES, 4);
}

/* Appends an attribute of one element. It consists of a name, a datatype, a dataspace without dimensions, and
 * the value. */
static ditto_status add_attribute(struct writer *w, const char *name, const unsigned char *type,
                                  size_t type_bytes, const void *value, size_t bytes)
{
    enum { FIRST = 8, SPACE_BYTES = 8 };
    size_t name_bytes = strlen(name) + 1;
    size_t type_at = FIRST + dti_h5_padded(name_bytes), space_at = type_at + dti_h5_padded(type_bytes);
    unsigned char *at;
    if (name_bytes > MOST_MESSAGE_BYTES || space_at + SPACE_BYTES + bytes > MOST_MESSAGE_BYTES)
        return DTI_FAIL(DITTO_ERR_INVALID,
                        "the attribute \"%.100s\" does not fit: its name has %zu bytes and its value %zu, "
                        "but a file can hold about %u of both: save a longer value as a variable of u8",
                        name, name_bytes - 1, bytes, MOST_MESSAGE_BYTES);
    DTI_TRY(add_message(w, DTI_H5_ATTRIBUTE, false, space_at + SPACE_BYTES + bytes, &at));
    at[0] = 1; /* version */
    dti_put_number(at + 2, name_bytes, 2);
    dti_put_number(at + 4, type_bytes, 2);
    dti_put_number(at + 6, SPACE_BYTES, 2);
    memcpy(at + FIRST, name, name_bytes);
    memcpy(at + type_at, type, type_bytes);
    at[space_at] = 1; /* version */
    memcpy(at + space_at + SPACE_BYTES, value, bytes);
    return DITTO_OK;
}

static ditto_status add_number(struct writer *w, const char *name, ditto_dtype dtype, const void *value)
{
    unsigned char type[DTI_H5_TYPE_BYTES];
    size_t type_bytes = dti_h5_type(dtype, type);
    return add_attribute(w, name, type, type_bytes, value, ditto_dtype_bytes(dtype));
}

static ditto_status add_text(struct writer *w, const char *name, const char *text)
{
    unsigned char type[DTI_H5_TYPE_BYTES];
    size_t bytes = strlen(text) + 1, type_bytes = dti_h5_text_type(bytes, type);
    return add_attribute(w, name, type, type_bytes, text, bytes);
}

static ditto_status add_user_attribute(struct writer *w, const ditto_attribute *a)
{
    switch (a->kind) {
    case DITTO_ATTRIBUTE_TEXT:
        return add_text(w, a->name, a->text);
    case DITTO_ATTRIBUTE_INTEGER:
        return add_number(w, a->name, DITTO_I64, &a->integer);
    default:
        return add_number(w, a->name, DITTO_F64, &a->real);
    }
}

/* -- Datasets -- */

/* Appends a dataset. Until lay_out_values is called, entry->offset is the position at which the address of
 * its values must be stored. */
static ditto_status add_dataset(struct writer *w, struct dti_contents_entry *entry, uint64_t *address)
{
    unsigned char type[DTI_H5_TYPE_BYTES], *at;
    size_t type_bytes = dti_h5_type(entry->spec.dtype, type);
    const ditto_tensor *spec = &entry->spec;
    int8_t trainable = entry->trainable;
    DTI_TRY(begin_header(w, address));
    DTI_TRY(add_message(w, DTI_H5_DATASPACE, false, 8 + (size_t)spec->rank * 16, &at));
    at[0] = 1; /* version */
    at[1] = (unsigned char)spec->rank;
    at[2] = spec->rank != 0; /* the maximal dimensions follow, and are equal to the dimensions */
    for (uint32_t i = 0; i < spec->rank; i++) {
        dti_put_number(at + 8 + i * 8, spec->shape[i], 8);
        dti_put_number(at + 8 + (spec->rank + i) * 8, spec->shape[i], 8);
    }
    DTI_TRY(add_message(w, DTI_H5_DATATYPE, true, type_bytes, &at));
    memcpy(at, type, type_bytes);
    DTI_TRY(add_message(w, DTI_H5_FILL_VALUE, true, 8, &at));
    /* The fill value message has version 2. Space is allocated early and is never filled. The fill value is
     * the default, which is empty. */
    dti_put_bytes(at, "\2\1\1\1", 4);
    DTI_TRY(add_message(w, DTI_H5_LAYOUT, true, 18, &at));
    dti_put_bytes(at, "\3\1", 2); /* version 3, contiguous */
    dti_put_number(at + 2, DTI_H5_UNDEFINED, 8);
    dti_put_number(at + 10, ditto_tensor_bytes(&entry->spec), 8);
    entry->offset = (uint64_t)(at + 2 - w->bytes);
    DTI_TRY(add_text(w, "dtype", ditto_dtype_name(spec->dtype)));
    if (entry->own)
        DTI_TRY(add_text(w, "kind", "data"));
    else {
        DTI_TRY(
            add_text(w, "synchronization", dti_h5_synchronizations[entry->synchronization - DITTO_ON_WRITE]));
        DTI_TRY(add_text(w, "aggregation", dti_h5_aggregations[entry->aggregation - DITTO_AGGREGATE_NONE]));
        DTI_TRY(add_number(w, "trainable", DITTO_I8, &trainable));
    }
    finish_header(w, *address, entry->own ? 6 : 8);
    return DITTO_OK;
}

/* -- Groups -- */

struct group {
    uint64_t header, tree, heap;
};

/* A link in a group to a dataset or to another group. */
struct link {
    const char *name; /* not terminated */
    size_t length;
    bool is_group;
    struct group to;
    uint64_t heap_offset; /* of the name */
};

/* A node that a node of a tree points to. */
struct branch {
    uint64_t address;
    uint64_t last_name; /* the heap offset of the greatest name in the node */
};

static ditto_status add_heap(struct writer *w, struct link *link, size_t links, uint64_t *address)
{
    size_t bytes = 8; /* the empty name, which is the first key of a tree */
    for (size_t i = 0; i < links; i++) {
        link[i].heap_offset = bytes;
        bytes += dti_h5_padded(link[i].length + 1);
    }
    *address = w->size;
    unsigned char *at = add(w, DTI_H5_HEAP_BYTES + bytes);
    if (at == NULL)
        return DITTO_ERR_NO_MEMORY;
    dti_put_bytes(at, "HEAP", 4);
    dti_put_number(at + 8, bytes, 8);
    dti_put_number(at + 16, NO_FREE_BLOCKS, 8);
    dti_put_number(at + 24, *address + DTI_H5_HEAP_BYTES, 8);
    for (size_t i = 0; i < links; i++)
        memcpy(at + DTI_H5_HEAP_BYTES + link[i].heap_offset, link[i].name, link[i].length);
    return DITTO_OK;
}

/* Writes a symbol table entry. The superblock contains one for the root group. */
static void put_symbol(unsigned char *at, uint64_t name, bool is_group, const struct group *to)
{
    dti_put_number(at, name, 8);
    dti_put_number(at + 8, to->header, 8);
    dti_put_number(at + 16, is_group, 4); /* 1 if the addresses of tree and heap follow */
    dti_put_number(at + 24, is_group ? to->tree : 0, 8);
    dti_put_number(at + 32, is_group ? to->heap : 0, 8);
}

static ditto_status add_symbol_nodes(struct writer *w, const struct link *link, size_t links,
                                     struct branch *branch)
{
    for (size_t i = 0; i < links; i++) {
        size_t in_node = i % SYMBOLS;
        if (in_node == 0) {
            branch[i / SYMBOLS].address = w->size;
            unsigned char *at = add(w, SYMBOL_NODE_BYTES);
            if (at == NULL)
                return DITTO_ERR_NO_MEMORY;
            dti_put_bytes(at, "SNOD\1", 5);
            dti_put_number(at + 6, links - i < SYMBOLS ? links - i : SYMBOLS, 2);
        }
        unsigned char *node = w->bytes + branch[i / SYMBOLS].address;
        put_symbol(node + DTI_H5_SYMBOLS_BYTES + in_node * DTI_H5_SYMBOL_BYTES, link[i].heap_offset,
                   link[i].is_group, &link[i].to);
        branch[i / SYMBOLS].last_name = link[i].heap_offset;
    }
    return DITTO_OK;
}

/* Appends one level of a tree, whose nodes point to the nodes in branch[*branches]. Afterwards the array
 * contains the new nodes, as the branches of the next level. The key before a child is the greatest name of
 * the previous child, or the empty name if there is none. The key after a child is the child's own greatest
 * name. */
static ditto_status add_tree_level(struct writer *w, struct branch *branch, size_t *branches, int level)
{
    size_t nodes = (*branches + CHILDREN - 1) / CHILDREN;
    uint64_t first = w->size, key_before = 0;
    for (size_t n = 0; n < nodes; n++) {
        size_t children = *branches - n * CHILDREN < CHILDREN ? *branches - n * CHILDREN : CHILDREN;
        uint64_t address = w->size;
        unsigned char *at = add(w, TREE_BYTES);
        if (at == NULL)
            return DITTO_ERR_NO_MEMORY;
        dti_put_bytes(at, "TREE", 4);
        at[5] = (unsigned char)level;
        dti_put_number(at + 6, children, 2);
        dti_put_number(at + 8, n > 0 ? address - TREE_BYTES : DTI_H5_UNDEFINED, 8);
        dti_put_number(at + 16, n + 1 < nodes ? address + TREE_BYTES : DTI_H5_UNDEFINED, 8);
        dti_put_number(at + DTI_H5_TREE_BYTES, key_before, 8);
        for (size_t i = 0; i < children; i++) {
            const struct branch *child = &branch[n * CHILDREN + i];
            dti_put_number(at + DTI_H5_TREE_BYTES + 8 + i * 16, child->address, 8);
            dti_put_number(at + DTI_H5_TREE_BYTES + 16 + i * 16, child->last_name, 8);
            key_before = child->last_name;
        }
    }
    for (size_t n = 0; n < nodes; n++) {
        size_t last = (n + 1) * CHILDREN < *branches ? (n + 1) * CHILDREN - 1 : *branches - 1;
        branch[n] = (struct branch){ first + n * TREE_BYTES, branch[last].last_name };
    }
    *branches = nodes;
    return DITTO_OK;
}

static ditto_status add_tree(struct writer *w, const struct link *link, size_t links, uint64_t *address)
{
    size_t branches = (links + SYMBOLS - 1) / SYMBOLS;
    struct branch *branch = malloc((branches + 1) * sizeof *branch);
    if (branch == NULL)
        return no_memory();
    ditto_status status = add_symbol_nodes(w, link, links, branch);
    int level = 0;
    do
        status = status == DITTO_OK ? add_tree_level(w, branch, &branches, level++) : status;
    while (status == DITTO_OK && branches > 1);
    if (status == DITTO_OK)
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): a tree has a root */
        *address = branch[0].address;
    free(branch);
    return status;
}

static ditto_status add_group_header(struct writer *w, bool is_root, struct group *group)
{
    size_t messages = 1;
    unsigned char *at;
    DTI_TRY(begin_header(w, &group->header));
    DTI_TRY(add_message(w, DTI_H5_GROUP, false, 16, &at));
    dti_put_number(at, group->tree, 8);
    dti_put_number(at + 8, group->heap, 8);
    if (is_root) {
        const struct dti_contents *c = w->contents;
        if (c->attributes > MOST_MESSAGES - 3)
            return DTI_FAIL(DITTO_ERR_INVALID, "%zu attributes: a file can hold at most %u", c->attributes,
                            MOST_MESSAGES - 3);
        DTI_TRY(add_text(w, "ditto_version", c->version));
        DTI_TRY(add_number(w, "ditto_step", DITTO_I64, &c->step));
        for (size_t i = 0; i < c->attributes; i++)
            DTI_TRY(add_user_attribute(w, &c->attribute[i]));
        messages += 2 + c->attributes;
    }
    finish_header(w, group->header, messages);
    return DITTO_OK;
}

/* Appends a group that contains entries [first, end). The first `prefix` bytes of their names are the path of
 * the group, with the "/" at its end. The entries are sorted, so the members of each inner group are
 * adjacent. Below the root, the depth of the recursion is at most DITTO_MAX_CHECKPOINT_GROUPS, which
 * contents.c has checked. */
static ditto_status add_group(struct writer *w, size_t first, size_t end, size_t prefix, struct group *group);

static ditto_status add_members(struct writer *w, size_t first, size_t end, size_t prefix, struct link *link,
                                size_t *links)
{
    for (size_t i = first; i < end;) {
        const char *name = w->entry[i]->name;
        struct link *l = &link[(*links)++];
        l->name = name + prefix;
        l->length = strcspn(l->name, "/");
        l->is_group = l->name[l->length] == '/';
        if (!l->is_group) {
            DTI_TRY(add_dataset(w, w->entry[i++], &l->to.header));
            continue;
        }
        size_t inner_prefix = prefix + l->length + 1, inner_first = i++;
        while (i < end && strncmp(w->entry[i]->name, name, inner_prefix) == 0)
            i++;
        DTI_TRY(add_group(w, inner_first, i, inner_prefix, &l->to));
    }
    return DITTO_OK;
}

static ditto_status add_group(struct writer *w, size_t first, size_t end, size_t prefix, struct group *group)
{
    size_t links = 0;
    struct link *link = calloc(end - first + 1, sizeof *link);
    if (link == NULL)
        return no_memory();
    ditto_status status = add_members(w, first, end, prefix, link, &links);
    if (status == DITTO_OK)
        status = add_heap(w, link, links, &group->heap);
    if (status == DITTO_OK)
        status = add_tree(w, link, links, &group->tree);
    free(link);
    return status == DITTO_OK ? add_group_header(w, prefix == 0, group) : status;
}

/* -- The whole file -- */

/* Assigns the offsets of the values, and stores their addresses in the datasets. The values follow the
 * skeleton in the order of the contents. Returns the length of the file. */
static uint64_t lay_out_values(struct writer *w, struct dti_contents *contents)
{
    uint64_t end = DTI_USER_BLOCK + w->size;
    for (size_t i = 0; i < contents->entries; i++) {
        struct dti_contents_entry *entry = &contents->entry[i];
        uint64_t bytes = ditto_tensor_bytes(&entry->spec), unit = bytes >= ALIGN_FROM ? PAGE : DTI_CACHE_LINE;
        uint64_t address_at = entry->offset;
        entry->offset = 0;
        if (bytes == 0)
            continue;
        entry->offset = (end + unit - 1) / unit * unit;
        end = entry->offset + bytes;
        dti_put_number(w->bytes + address_at, entry->offset - DTI_USER_BLOCK, 8);
    }
    return end;
}

static ditto_status lay_out(struct writer *w, struct dti_contents *contents, struct dti_skeleton *out)
{
    struct group root = { 0 };
    if (add(w, DTI_H5_SUPERBLOCK_BYTES) == NULL)
        return DITTO_ERR_NO_MEMORY;
    DTI_TRY(add_group(w, 0, contents->entries, 0, &root));
    uint64_t file_bytes = lay_out_values(w, contents);
    unsigned char *at = w->bytes;
    dti_put_bytes(at, DTI_H5_SIGNATURE, 8);
    at[13] = 8; /* bytes of an address */
    at[14] = 8; /* bytes of a length */
    dti_put_number(at + DTI_H5_AT_LEAF_K, LEAF_K, 2);
    dti_put_number(at + DTI_H5_AT_INTERNAL_K, INTERNAL_K, 2);
    dti_put_number(at + DTI_H5_AT_BASE, DTI_USER_BLOCK, 8);
    dti_put_number(at + DTI_H5_AT_FREE, DTI_H5_UNDEFINED, 8);
    dti_put_number(at + DTI_H5_AT_END, file_bytes, 8);
    dti_put_number(at + DTI_H5_AT_DRIVER, DTI_H5_UNDEFINED, 8);
    put_symbol(at + DTI_H5_AT_ROOT, 0, true, &root);
    *out = (struct dti_skeleton){ w->bytes, w->size, file_bytes };
    return DITTO_OK;
}

ditto_status dti_hdf5_lay_out(struct dti_contents *contents, struct dti_skeleton *out)
{
    struct dti_contents_entry **sorted = dti_contents_sorted(contents);
    if (sorted == NULL)
        return DITTO_ERR_NO_MEMORY;
    struct writer w = { .entry = sorted, .contents = contents };
    ditto_status status = lay_out(&w, contents, out);
    if (status != DITTO_OK)
        free(w.bytes);
    free(sorted);
    return status;
}
