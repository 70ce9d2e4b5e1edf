/* examples/language_model/model.c - the shape of a model, and the files that hold one. */
#include "model.h"
#include "tokenizer.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER_NUMBERS = 7 };

struct parameter_shape parameter_shape(const struct model_shape *s, enum parameter p)
{
    uint32_t head = s->dim / s->heads, group = s->heads / s->kv_heads * head;
    switch (p) {
    case EMBEDDING:
        return (struct parameter_shape){ "embedding", 2, { s->vocabulary, s->dim }, -1, s->dim, true };
    case ATTENTION_NORM:
        return (struct parameter_shape){ "attention norm", 2, { s->layers, s->dim }, -1, s->dim, false };
    case QUERY:
        return (struct parameter_shape){ "query", 4,      { s->layers, s->kv_heads, group, s->dim },
                                         1,       s->dim, true };
    case KEY:
    case VALUE:
        return (struct parameter_shape){
            p == KEY ? "key" : "value", 4, { s->layers, s->kv_heads, head, s->dim }, 1, s->dim, true
        };
    case OUTPUT:
        return (struct parameter_shape){ "output", 4,      { s->layers, s->dim, s->kv_heads, group },
                                         2,        s->dim, true };
    case FEED_NORM:
        return (struct parameter_shape){ "feed norm", 2, { s->layers, s->dim }, -1, s->dim, false };
    case GATE:
    case UP:
        return (struct parameter_shape){
            p == GATE ? "gate" : "up", 3, { s->layers, s->hidden, s->dim }, 1, s->dim, true
        };
    case DOWN:
        return (struct parameter_shape){ "down", 3, { s->layers, s->dim, s->hidden }, 2, s->hidden, true };
    case FINAL_NORM:
        return (struct parameter_shape){ "final norm", 1, { s->dim }, -1, s->dim, false };
    default:
        return (struct parameter_shape){ "classifier", 2, { s->vocabulary, s->dim }, 0, s->dim, true };
    }
}

/* Returns a product, or SIZE_MAX if it is too large. */
static size_t times(size_t a, size_t b)
{
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

size_t parameter_count(const struct model_shape *shape, enum parameter p)
{
    struct parameter_shape s = parameter_shape(shape, p);
    size_t count = 1;
    for (uint32_t i = 0; i < s.rank; i++)
        count = times(count, s.extent[i]);
    return count;
}

const char *model_shape_fault(const struct model_shape *s)
{
    if (s->dim == 0 || s->hidden == 0 || s->layers == 0 || s->heads == 0 || s->kv_heads == 0 ||
        s->positions == 0)
        return "a size is 0 or negative";
    if (s->dim % s->heads != 0 || s->dim / s->heads % 2 != 0)
        return "dim is no multiple of twice the number of heads";
    if (s->heads % s->kv_heads != 0)
        return "the number of heads is no multiple of that of the key/value heads";
    if (s->vocabulary < BYTE_VOCABULARY)
        return "the vocabulary has less than 259 tokens: three special ones and the bytes";
    return NULL;
}

/* The two tables of rotations that stand in a file before the classifier. They are not used, because they
 * follow from the position. */
static size_t rotation_count(const struct model_shape *s)
{
    return times(s->positions, s->dim / s->heads / 2 * 2);
}

/* Returns the size of the file of a model, or SIZE_MAX if there is no such file. */
static size_t file_bytes(const struct model_shape *s)
{
    size_t count = HEADER_NUMBERS, parts[PARAMETERS + 1];
    for (int p = 0; p < PARAMETERS; p++)
        parts[p] = p == CLASSIFIER && !s->own_classifier ? 0 : parameter_count(s, (enum parameter)p);
    parts[PARAMETERS] = rotation_count(s);
    for (int i = 0; i <= PARAMETERS; i++)
        if (__builtin_add_overflow(count, parts[i], &count))
            return SIZE_MAX;
    return times(count, sizeof(float));
}

void refuse_file(const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", path);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(2);
}

char *read_whole_file(const char *path, size_t *bytes)
{
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &about) != 0)
        refuse_file(path, "%s", strerror(errno));
    if (!S_ISREG(about.st_mode))
        refuse_file(path, "it is no file");
    *bytes = (size_t)about.st_size;
    char *all = malloc(*bytes + 1);
    if (all == NULL || fread(all, 1, *bytes, file) != *bytes)
        refuse_file(path, "its %zu bytes cannot be read", *bytes);
    fclose(file);
    return all;
}

static struct model_shape shape_of(const char *path, const int32_t *number)
{
    struct model_shape s = { .own_classifier = number[5] < 0 };
    uint32_t *const size[] = { &s.dim, &s.hidden, &s.layers, &s.heads, &s.kv_heads, NULL, &s.positions };
    for (int i = 0; i < HEADER_NUMBERS; i++)
        if (size[i] != NULL)
            *size[i] = number[i] < 0 ? 0 : (uint32_t)number[i];
    s.vocabulary = number[5] < 0 ? -(uint32_t)number[5] : (uint32_t)number[5];
    const char *fault = model_shape_fault(&s);
    if (fault != NULL)
        refuse_file(path,
                    "no model: %s (dim %d, hidden %d, layers %d, heads %d, key/value heads %d, vocabulary "
                    "%d, positions %d)",
                    fault, number[0], number[1], number[2], number[3], number[4], number[5], number[6]);
    return s;
}

static void check_numbers(const char *path, const char *name, const float *array, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(array[i]))
            refuse_file(path, "element %zu of \"%s\" is no finite number", i, name);
}

struct model_file model_open(const char *path)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &about) != 0)
        refuse_file(path, "%s", strerror(errno));
    if (!S_ISREG(about.st_mode))
        refuse_file(path, "it is no file");
    size_t bytes = (size_t)about.st_size;
    if (bytes < HEADER_NUMBERS * sizeof(int32_t))
        refuse_file(path, "no model: it has %zu bytes, and the header alone has %zu", bytes,
                    HEADER_NUMBERS * sizeof(int32_t));
    const char *begin = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (begin == MAP_FAILED)
        refuse_file(path, "%s", strerror(errno));
    close(file);
    int32_t number[HEADER_NUMBERS];
    memcpy(number, begin, sizeof number);
    struct model_file model = { .shape = shape_of(path, number) };
    size_t expected = file_bytes(&model.shape);
    if (bytes != expected)
        refuse_file(path,
                    "it has %zu bytes, but a model of its header has %zu: it is damaged, or of another "
                    "version",
                    bytes, expected);
    const float *at = (const float *)(const void *)(begin + sizeof number);
    for (int p = 0; p < PARAMETERS; p++) {
        if (p == CLASSIFIER)
            at += rotation_count(&model.shape);
        model.array[p] = at;
        if (p == CLASSIFIER && !model.shape.own_classifier) {
            model.array[p] = model.array[EMBEDDING];
            break;
        }
        size_t count = parameter_count(&model.shape, (enum parameter)p);
        check_numbers(path, parameter_shape(&model.shape, (enum parameter)p).name, at, count);
        at += count;
    }
    return model;
}

bool model_write(const char *path, const struct model_shape *s, const float *const *array)
{
    int32_t words = (int32_t)s->vocabulary;
    const int32_t number[HEADER_NUMBERS] = { (int32_t)s->dim,      (int32_t)s->hidden,
                                             (int32_t)s->layers,   (int32_t)s->heads,
                                             (int32_t)s->kv_heads, s->own_classifier ? -words : words,
                                             (int32_t)s->positions };
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return false;
    bool good = fwrite(number, sizeof number, 1, file) == 1;
    for (int p = 0; p < PARAMETERS && good; p++) {
        const float none = 0;
        for (size_t i = p == CLASSIFIER ? rotation_count(s) : 0; i > 0 && good; i--)
            good = fwrite(&none, sizeof none, 1, file) == 1;
        size_t count = p == CLASSIFIER && !s->own_classifier ? 0 : parameter_count(s, (enum parameter)p);
        good = good && fwrite(array[p], sizeof(float), count, file) == count;
    }
    return (fclose(file) == 0) && good;
}
