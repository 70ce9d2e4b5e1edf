/* examples/language_model/tokenizer.h - text as numbers. The file is that of llama2.c.
 *
 * Tokens 0 to 2 stand for unknown text, the beginning and the end. Tokens 3 to 258 are the bytes, and further
 * ones are longer strings. A text is divided into characters, and pairs of neighbours are merged while their
 * joined string is a token (byte pair encoding: Sennrich, Haddow, Birch 2016). */
#ifndef TOKENIZER_H
#define TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOKEN_BEGIN = 1, TOKEN_END = 2, TOKEN_BYTE = 3, BYTE_VOCABULARY = TOKEN_BYTE + 256 };

struct token {
    const char *string;
    uint32_t length; /* in bytes, any of which may be 0 */
    float score;
};

struct tokenizer {
    uint32_t vocabulary;
    struct token *token;
    uint32_t longest; /* the length of the longest token */
    uint32_t *sorted; /* [vocabulary] ids by string, and equal strings by id */
    char *bytes;      /* the file */
};

/* Opens a file for a number of tokens. Ends the program with a message if the file is damaged, or is of
 * another vocabulary. */
struct tokenizer tokenizer_open(const char *path, uint32_t vocabulary);
void tokenizer_close(struct tokenizer *t);

/* Writes a file of the special tokens and the bytes. Returns false if it cannot, and errno says why. */
bool tokenizer_write_bytes(const char *path);

/* Encodes a text. `out` has room for length + 2 tokens. Returns how many they are, TOKEN_BEGIN included. The
 * time grows with the square of the length. */
size_t tokenizer_encode(const struct tokenizer *t, const char *text, size_t length, int32_t *out);

/* Returns what a token stands for after another one. `byte` keeps the byte of a token that is one. */
struct token tokenizer_decode(const struct tokenizer *t, int32_t before, int32_t token, char *byte);

#endif
