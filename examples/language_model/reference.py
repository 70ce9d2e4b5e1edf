"""A plain reference for small language models in the version 0 file format of llama2.c.

The program reads a model file and a tokenizer file, and computes everything serially in double precision.
It is slow and easy to check, so that the results of a faster program can be compared with its results.
It also writes small files with random weights for such comparisons.

    reference.py write MODEL TOKENIZER [--dim 40 --hidden 52 --layers 2 --heads 10 --kv-heads 5
                                        --vocabulary 300 --positions 64 --own-classifier --seed 1]
    reference.py encode MODEL TOKENIZER TEXT
    reference.py logits MODEL TOKENIZER TEXT
    reference.py generate MODEL TOKENIZER TEXT [--steps N]

The command encode prints the token ids of a text. The command logits prints one line for each position, with
the token id and then all logits. The command generate runs the model on at most N positions, and writes the
prompt and its greedy continuation. Put "--" before TEXT if the text begins with a hyphen.
The exit status is 2 if a file is damaged or an argument is wrong.
"""

import argparse
import math
import os
import random
import struct
import sys

BEGIN, END, FIRST_BYTE, FIRST_STRING = 1, 2, 3, 259


class Refused(Exception):
    """A file or an argument cannot be used. The message says why."""


class Header:
    """The seven numbers of a model file, and the layout of the file that follows from them."""

    def __init__(self, *numbers):
        self.dim, self.hidden, self.layers, self.heads, self.kv_heads, vocabulary, self.positions = numbers
        self.vocabulary, self.own_classifier = abs(vocabulary), vocabulary < 0
        for name, number in vars(self).items():
            if name != "own_classifier" and number < 1:
                raise Refused(f"the header says {name} = {number}, but it must be positive")
        if self.dim % (2 * self.heads):
            raise Refused(f"dim = {self.dim} is not a multiple of twice heads = {self.heads}")
        if self.heads % self.kv_heads:
            raise Refused(f"heads = {self.heads} is not a multiple of kv_heads = {self.kv_heads}")
        if self.vocabulary < FIRST_STRING:
            raise Refused(f"the vocabulary has {self.vocabulary} tokens, but it needs {FIRST_STRING}")
        self.head = self.dim // self.heads

    def layout(self):
        """Returns (name, number of matrices, rows, columns) for each array, in the order of the file."""
        dim, hidden, layers, kv = self.dim, self.hidden, self.layers, self.kv_heads * self.head
        arrays = [("embedding", 1, self.vocabulary, dim), ("rms_att", layers, 1, dim),
                  ("wq", layers, dim, dim), ("wk", layers, kv, dim), ("wv", layers, kv, dim),
                  ("wo", layers, dim, dim), ("rms_ffn", layers, 1, dim),
                  ("w1", layers, hidden, dim), ("w2", layers, dim, hidden), ("w3", layers, hidden, dim),
                  ("rms_final", 1, 1, dim), ("rotations", 2, self.positions, self.head // 2)]
        return arrays + [("classifier", 1, self.vocabulary, dim)] * self.own_classifier


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


def times(matrix, x):
    return [dot(row, x) for row in matrix]


def add(x, y):
    return [a + b for a, b in zip(x, y)]


def rmsnorm(x, weight):
    scale = 1 / math.sqrt(dot(x, x) / len(x) + 1e-5)
    return [a * scale * w for a, w in zip(x, weight)]


def silu(z):
    """Returns z / (1 + exp(-z)). Negative arguments use exp(z) instead, which cannot overflow."""
    return z / (1 + math.exp(-z)) if z >= 0 else z * math.exp(z) / (1 + math.exp(z))


def softmax(scores):
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    total = sum(powers)
    return [power / total for power in powers]


def rotate(x, position, head):
    """Rotates the pair (2i, 2i + 1) of each head by the angle position / 10000^(2i / head)."""
    result = []
    for j in range(0, len(x), 2):
        angle = position / 10000 ** (j % head / head)
        cosine, sine = math.cos(angle), math.sin(angle)
        result += [x[j] * cosine - x[j + 1] * sine, x[j] * sine + x[j + 1] * cosine]
    return result


class Model:
    """The weights of a model file, and the keys and values of the positions that have been computed."""

    def __init__(self, path):
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 28:
                raise Refused(f"{path} has {size} bytes, which is too short for a header")
            self.header = Header(*struct.unpack("<7i", file.read(28)))
            expected = 28 + sum(4 * math.prod(sizes) for _, *sizes in self.header.layout())
            if size != expected:
                raise Refused(f"{path} has {size} bytes, but its header implies {expected}")
            self.weights = {}
            for name, count, rows, columns in self.header.layout():
                lines = [struct.unpack(f"<{columns}f", file.read(4 * columns)) for _ in range(count * rows)]
                self.weights[name] = [lines[i * rows:(i + 1) * rows] for i in range(count)]
        self.classifier = self.weights["classifier" if self.header.own_classifier else "embedding"][0]
        self.keys = [[] for _ in range(self.header.layers)]
        self.values = [[] for _ in range(self.header.layers)]

    def attention(self, query, keys, values):
        """Returns the results of all heads, one after the other."""
        head, result = self.header.head, []
        for h in range(self.header.heads):
            shared = h // (self.header.heads // self.header.kv_heads)
            own, group = slice(h * head, (h + 1) * head), slice(shared * head, (shared + 1) * head)
            weights = softmax([dot(query[own], key[group]) / math.sqrt(head) for key in keys])
            result += [dot(weights, column) for column in zip(*(value[group] for value in values))]
        return result

    def step(self, token):
        """Runs the model on the token at the next position and returns the logits."""
        w, head, position = self.weights, self.header.head, len(self.keys[0])
        x = w["embedding"][0][token]
        for layer, (keys, values) in enumerate(zip(self.keys, self.values)):
            a = rmsnorm(x, w["rms_att"][layer][0])
            query = rotate(times(w["wq"][layer], a), position, head)
            keys.append(rotate(times(w["wk"][layer], a), position, head))
            values.append(times(w["wv"][layer], a))
            x = add(x, times(w["wo"][layer], self.attention(query, keys, values)))
            b = rmsnorm(x, w["rms_ffn"][layer][0])
            gated = [silu(z) * y for z, y in zip(times(w["w1"][layer], b), times(w["w3"][layer], b))]
            x = add(x, times(w["w2"][layer], gated))
        return times(self.classifier, rmsnorm(x, w["rms_final"][0][0]))


class Tokenizer:
    """The strings and scores of a tokenizer file."""

    def __init__(self, path, vocabulary):
        with open(path, "rb") as file:
            data = file.read()
        longest, at = int.from_bytes(data[:4], "little", signed=True), 4
        self.strings, self.scores, self.ids = [], [], {}
        for token in range(vocabulary):
            score, length = struct.unpack("<fi", data[at:at + 8].ljust(8, b"\0"))
            if not 0 <= length <= longest:
                raise Refused(f"{path} says that token {token} has {length} bytes, outside 0 to {longest}")
            if at + 8 + length > len(data):
                raise Refused(f"{path} has {len(data)} bytes and ends inside token {token} of {vocabulary}")
            self.strings.append(data[at + 8:at + 8 + length])
            self.scores.append(score)
            self.ids.setdefault(self.strings[-1], token)
            at += 8 + length
        if at != len(data):
            raise Refused(f"{path} has {len(data) - at} bytes after its {vocabulary} tokens")

    def encode(self, text):
        """Returns the ids of a text in bytes. Each byte outside valid UTF-8 is split off alone."""
        tokens = []
        for letter in (b" " + text if text else b"").decode("utf-8", "surrogateescape"):
            letter = letter.encode("utf-8", "surrogateescape")
            tokens += [self.ids[letter]] if letter in self.ids else [FIRST_BYTE + byte for byte in letter]
        while True:
            best = None
            for i in range(len(tokens) - 1):
                joined = self.ids.get(self.strings[tokens[i]] + self.strings[tokens[i + 1]])
                if joined is not None and (best is None or self.scores[joined] > self.scores[best]):
                    best, where = joined, i
            if best is None:
                return [BEGIN] + tokens
            tokens[where:where + 2] = [best]

    def decode(self, previous, token):
        """Returns the bytes that a token adds to the text after the previous token."""
        string = self.strings[token]
        if previous == BEGIN and string.startswith(b" "):
            string = string[1:]
        if len(string) == 6 and string.startswith(b"<0x") and string.endswith(b">"):
            if all(digit in b"0123456789abcdefABCDEF" for digit in string[3:5]):
                return bytes([int(string[3:5], 16)])
        return string


def sample_strings(vocabulary, source):
    """Returns the strings of a vocabulary. Each longer string can be reached by merging two earlier ones."""
    fixed = ["<unk>", "\n<s>\n", "\n</s>\n"] + [f"<0x{byte:02X}>" for byte in range(256)]
    strings = list(" abcdefghijklmnopqrstuvwxyz\u00e9\u00df")
    strings += ["he", "th", " t", "er", "aa", "the", "in", "\u00dfe", " the", "\u00e9t", "an", "and"]
    strings += [" a", "nd", " and", "ing", "on", "re", " w", "there", " there", "\u00e9t\u00e9"]
    known = set(strings)
    while len(fixed) + len(strings) < vocabulary:
        joined = source.choice(strings) + source.choice(strings)
        if len(joined) <= 12 and joined not in known:
            known.add(joined)
            strings.append(joined)
    return [string.encode() for string in (fixed + strings)[:vocabulary]]


def write(args):
    numbers = [args.dim, args.hidden, args.layers, args.heads, args.kv_heads, args.vocabulary, args.positions]
    if args.vocabulary < FIRST_STRING:
        raise Refused(f"the vocabulary must have at least {FIRST_STRING} tokens")
    numbers[5] *= -1 if args.own_classifier else 1
    header, source = Header(*numbers), random.Random(args.seed)
    with open(args.model, "wb") as file:
        file.write(struct.pack("<7i", *numbers))
        for name, count, rows, columns in header.layout():
            mean, deviation = (1, 0.1) if name.startswith("rms") else (0, 1 / math.sqrt(columns))
            if name in ("embedding", "rotations"):
                deviation = 1
            for _ in range(count * rows):
                row = [source.gauss(mean, deviation) for _ in range(columns)]
                file.write(struct.pack(f"<{columns}f", *row))
    strings = sample_strings(header.vocabulary, source)
    with open(args.tokenizer, "wb") as file:
        file.write(struct.pack("<i", max(map(len, strings))))
        for token, string in enumerate(strings):
            file.write(struct.pack("<fi", -token, len(string)) + string)


def load(args):
    model = Model(args.model)
    tokenizer = Tokenizer(args.tokenizer, model.header.vocabulary)
    return model, tokenizer, tokenizer.encode(os.fsencode(args.text))


def encode(args):
    print(*load(args)[2])


def logits(args):
    model, _, tokens = load(args)
    if len(tokens) > model.header.positions:
        raise Refused(f"the text has {len(tokens)} tokens, more than the {model.header.positions} positions")
    for token in tokens:
        print(token, *("%.9g" % logit for logit in model.step(token)))


def generate(args):
    """Runs the model on at most N positions. A prompt that needs more of them is cut off there."""
    model, tokenizer, tokens = load(args)
    steps = model.header.positions if args.steps is None else min(args.steps, model.header.positions)
    if steps < 1:
        raise Refused(f"the number of steps is {steps}, but it must be positive")
    for position in range(steps):
        result = model.step(tokens[position])
        if position + 1 == len(tokens):
            tokens.append(result.index(max(result)))
            if tokens[-1] in (BEGIN, END):
                break
        sys.stdout.buffer.write(tokenizer.decode(tokens[position], tokens[position + 1]))
    sys.stdout.buffer.write(b"\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (write, encode, logits, generate):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        for name in ("model", "tokenizer", "text")[:2 if function is write else 3]:
            command.add_argument(name)
    for name, default in {"dim": 40, "hidden": 52, "layers": 2, "heads": 10, "kv-heads": 5,
                          "vocabulary": 300, "positions": 64, "seed": 1}.items():
        commands.choices["write"].add_argument(f"--{name}", type=int, default=default)
    commands.choices["write"].add_argument("--own-classifier", action="store_true")
    commands.choices["generate"].add_argument("--steps", type=int)
    args = parser.parse_args()
    try:
        args.function(args)
    except (Refused, OSError) as error:
        print(f"reference.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
