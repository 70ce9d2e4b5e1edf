/* examples/language_model/tokenizer.c - text as numbers. */
#include "tokenizer.h"
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_TOKEN = -1, HEAD_BYTES = 8 /* the score and the length of a token */ };

/* -- files -- */

static int compare_strings(const struct token *a, const struct token *b)
{
    int order = memcmp(a->string, b->string, a->length < b->length ? a->length : b->length);
    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_ids(const void *a, const void *b, void *tokens)
{
    const struct token *token = tokens;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    int order = compare_strings(&token[left], &token[right]);
    return order != 0 ? order : (left > right) - (left < right);
}

/* Reads the tokens, which follow each other in the file, and checks them. */
static void read_tokens(const char *path, struct tokenizer *t, size_t bytes)
{
    int32_t longest, length;
    size_t at = sizeof longest;
    if (bytes < sizeof longest)
        refuse_file(path, "no tokenizer: it has %zu bytes", bytes);
    memcpy(&longest, t->bytes, sizeof longest);
    for (uint32_t i = 0; i < t->vocabulary; i++) {
        struct token *token = &t->token[i];
        if (bytes - at < HEAD_BYTES)
            refuse_file(path, "it ends before token %u of %u: it is damaged, or of another model", i,
                        t->vocabulary);
        memcpy(&token->score, t->bytes + at, sizeof token->score);
        memcpy(&length, t->bytes + at + sizeof token->score, sizeof length);
        at += HEAD_BYTES;
        if (length < 0 || length > longest || (size_t)length > bytes - at)
            refuse_file(path, "token %u has %d bytes, but the longest has %d, and %zu are left", i, length,
                        longest, bytes - at);
        if (isnan(token->score))
            refuse_file(path, "the score of token %u is no number", i);
        token->string = t->bytes + at;
        token->length = (uint32_t)length;
        t->longest = token->length > t->longest ? token->length : t->longest;
        at += token->length;
    }
    if (at != bytes)
        refuse_file(path, "%zu bytes follow its %u tokens: it is of another model", bytes - at,
                    t->vocabulary);
}

struct tokenizer tokenizer_open(const char *path, uint32_t vocabulary)
{
    size_t bytes;
    struct tokenizer t = { .vocabulary = vocabulary, .bytes = read_whole_file(path, &bytes) };
    if (vocabulary > bytes / HEAD_BYTES)
        refuse_file(path, "it has %zu bytes, too few for %u tokens: it is damaged, or of another model",
                    bytes, vocabulary);
    t.token = calloc(vocabulary, sizeof *t.token);
    t.sorted = calloc(vocabulary, sizeof *t.sorted);
    if (t.token == NULL || t.sorted == NULL)
        refuse_file(path, "no memory for %u tokens", vocabulary);
    read_tokens(path, &t, bytes);
    for (uint32_t i = 0; i < vocabulary; i++)
        t.sorted[i] = i;
    qsort_r(t.sorted, vocabulary, sizeof *t.sorted, compare_ids, t.token);
    return t;
}

void tokenizer_close(struct tokenizer *t)
{
    free(t->token);
    free(t->sorted);
    free(t->bytes);
}

bool tokenizer_write_bytes(const char *path)
{
    static const char *const special[] = { "<unk>", "<s>", "</s>" };
    const int32_t longest = (int32_t)strlen("<0x00>");
    const float score = 0;
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return false;
    bool good = fwrite(&longest, sizeof longest, 1, file) == 1;
    for (int i = 0; i < BYTE_VOCABULARY && good; i++) {
        char string[8];
        int32_t length = i < TOKEN_BYTE ? snprintf(string, sizeof string, "%s", special[i])
                                        : snprintf(string, sizeof string, "<0x%02X>", i - TOKEN_BYTE);
        good = fwrite(&score, sizeof score, 1, file) == 1 && fwrite(&length, sizeof length, 1, file) == 1 &&
               fwrite(string, (size_t)length, 1, file) == 1;
    }
    return (fclose(file) == 0) && good;
}

/* -- text to tokens -- */

/* Returns the lowest id of a string, or NO_TOKEN. */
static int32_t find(const struct tokenizer *t, const char *string, size_t length)
{
    struct token wanted = { string, (uint32_t)length, 0 };
    uint32_t first = 0, end = t->vocabulary;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (compare_strings(&t->token[t->sorted[middle]], &wanted) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    bool found = first < t->vocabulary && compare_strings(&t->token[t->sorted[first]], &wanted) == 0;
    return found ? (int32_t)t->sorted[first] : NO_TOKEN;
}

/* Returns the token of two tokens, or NO_TOKEN. `both` has room for the longest token. */
static int32_t join(const struct tokenizer *t, int32_t left, int32_t right, char *both)
{
    const struct token *a = &t->token[left], *b = &t->token[right];
    if ((size_t)a->length + b->length > t->longest)
        return NO_TOKEN;
    memcpy(both, a->string, a->length);
    memcpy(both + a->length, b->string, b->length);
    return find(t, both, a->length + b->length);
}

/* Returns the length of the UTF-8 character at the beginning of a text. A byte that begins none is taken
 * alone. */
static size_t character_length(const unsigned char *text, size_t length)
{
    unsigned char c = text[0];
    size_t wanted = c < 0x80                ? 1
                    : c >= 0xc2 && c < 0xe0 ? 2
                    : c >= 0xe0 && c < 0xf0 ? 3
                    : c >= 0xf0 && c < 0xf5 ? 4
                                            : 1;
    if (wanted > length)
        return 1;
    for (size_t i = 1; i < wanted; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 1;
    /* Longer forms of shorter characters, halves of pairs, and numbers past the last character. */
    if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) || (c == 0xf0 && text[1] < 0x90) ||
        (c == 0xf4 && text[1] > 0x8f))
        return 1;
    return wanted;
}

static size_t add_character(const struct tokenizer *t, const char *text, size_t length, int32_t *out)
{
    int32_t whole = find(t, text, length);
    if (whole != NO_TOKEN) {
        out[0] = whole;
        return 1;
    }
    for (size_t i = 0; i < length; i++)
        out[i] = TOKEN_BYTE + (unsigned char)text[i];
    return length;
}

/* Merges the pair whose token has the highest score, of equal ones the leftmost, until there is none. */
static size_t merge(const struct tokenizer *t, int32_t *token, size_t count)
{
    int32_t *joined = malloc((count + 1) * sizeof *joined); /* of tokens i and i + 1 */
    char *both = malloc(t->longest + 1);
    if (joined == NULL || both == NULL)
        refuse_file("tokenizer", "no memory for a text of %zu tokens", count);
    for (size_t i = 0; i + 1 < count; i++)
        joined[i] = join(t, token[i], token[i + 1], both);
    for (;;) {
        size_t best = count;
        for (size_t i = 0; i + 1 < count; i++)
            if (joined[i] != NO_TOKEN &&
                (best == count || t->token[joined[i]].score > t->token[joined[best]].score))
                best = i;
        if (best == count)
            break;
        token[best] = joined[best];
        memmove(&token[best + 1], &token[best + 2], (count - best - 2) * sizeof *token);
        memmove(&joined[best], &joined[best + 1], (count - best - 2) * sizeof *joined);
        count--;
        if (best > 0)
            joined[best - 1] = join(t, token[best - 1], token[best], both);
        if (best + 1 < count)
            joined[best] = join(t, token[best], token[best + 1], both);
    }
    free(both);
    free(joined);
    return count;
}

size_t tokenizer_encode(const struct tokenizer *t, const char *text, size_t length, int32_t *out)
{
    size_t count = 0;
    *out++ = TOKEN_BEGIN;
    if (length > 0)
        count = add_character(t, " ", 1, out);
    for (size_t at = 0; at < length;) {
        size_t bytes = character_length((const unsigned char *)text + at, length - at);
        count += add_character(t, text + at, bytes, out + count);
        at += bytes;
    }
    return 1 + merge(t, out, count);
}

/* -- tokens to text -- */

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

struct token tokenizer_decode(const struct tokenizer *t, int32_t before, int32_t id, char *byte)
{
    struct token token = t->token[id];
    if (before == TOKEN_BEGIN && token.length > 0 && token.string[0] == ' ') {
        token.string++;
        token.length--;
    }
    if (token.length == 6 && memcmp(token.string, "<0x", 3) == 0 && token.string[5] == '>' &&
        digit(token.string[3]) >= 0 && digit(token.string[4]) >= 0) {
        *byte = (char)(digit(token.string[3]) * 16 + digit(token.string[4]));
        token = (struct token){ byte, 1, token.score };
    }
    return token;
}
