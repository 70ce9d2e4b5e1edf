"""Runs generate and train (examples/language_model) on files of the Python reference.

The reference was written from a description of the formats alone. The texts and logits are the same, damaged
files are refused, and a training that is resumed has the same bits as one that was not interrupted.

    test_programs.py REFERENCE GENERATE TEST_LANGUAGE_MODEL [TRAIN]
"""

import filecmp
import os
import struct
import subprocess
import sys
import tempfile

REFERENCE, GENERATE, LOGITS_TEST = sys.argv[1:4]
TRAIN = sys.argv[4] if len(sys.argv) > 4 else None
WITHIN = 100  # seconds


def run(*words, status=0, **more):
    """Runs a program, and returns what it has written. Its status must be the expected one."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, timeout=WITHIN, **more)
    assert done.returncode == status, \
        f"{' '.join(words)} ended with {done.returncode}: {done.stderr.decode()}"
    return done


def refer(*words):
    return run(sys.executable, REFERENCE, *words).stdout


def generate(*words, **more):
    return run(GENERATE, *words, **more).stdout


def check_texts():
    """A text is that of the reference, for every number of ranks, on one core, and beside other texts."""
    texts = ["the é and", "there", "", "a\nb  c"]
    for shape in ([], ["--own-classifier", "--vocabulary", 600, "--seed", 2],
                  ["--own-classifier", "--heads", 4, "--kv-heads", 4, "--dim", 48, "--hidden", 7]):
        refer("write", "model", "tokenizer", *shape)
        heads = 5 if "--kv-heads" not in shape else 4
        wanted = [refer("generate", "model", "tokenizer", "--steps", 40, "--", text) for text in texts]
        for tensor in range(1, heads + 1):
            found = generate("model", "tokenizer", texts[0], "--steps", 40, "--tensor", tensor)
            assert found == wanted[0], f"{tensor} ranks: {found} instead of {wanted[0]}"
        for data in 1, 2, 5:
            found = generate("model", "tokenizer", *texts, "--steps", 40, "--tensor", 2, "--data", data)
            assert found == b"".join(wanted), f"{data} groups: {found} instead of {wanted}"
        with open("logits", "wb") as file:
            file.write(refer("logits", "model", "tokenizer", "the é and there"))
        run(LOGITS_TEST, "model", "logits")


def check_choices():
    """With a seed, or with weights of bf16, a text does not depend on the other texts or on the cores."""
    refer("write", "model", "tokenizer", "--own-classifier", "--vocabulary", 600)
    core = {min(os.sched_getaffinity(0))}
    for words in (["--temperature", 90, "--seed", 5], ["--bf16"]):
        first = generate("model", "tokenizer", "the", "in", "there", "--tensor", 2, *words)
        again = generate("model", "tokenizer", "the", "in", "there", "--tensor", 2, "--data", 3, *words,
                         preexec_fn=lambda: os.sched_setaffinity(0, core))
        assert first == again, f"{words}: {first} and {again}"
    other = generate("model", "tokenizer", "the", "in", "there", "--temperature", 90, "--seed", 6)
    assert other != first, "a seed makes no difference"


def check_refused(found, message, *words):
    error = run(GENERATE, *words, status=2).stderr.decode()
    assert message in error, f"{found}: {error}"


def check_damaged():
    refer("write", "model", "tokenizer", "--own-classifier")
    with open("model", "rb") as file:
        model = file.read()
    with open("tokenizer", "rb") as file:
        tokenizer = file.read()

    def header(place, number):
        return model[:4 * place] + struct.pack("<i", number) + model[4 * place + 4:]

    nan = struct.pack("<f", float("nan"))
    for found, data, message in (
            ("no bytes", b"", "the header alone has 28"),
            ("a part", model[:-4], "but a model of its header has"),
            ("more bytes", model + b"1234", "but a model of its header has"),
            ("a size of 0", header(2, 0), "a size is 0"),
            ("a negative size", header(0, -4), "a size is 0"),
            ("heads", header(3, 7), "no multiple of twice"),
            ("shared heads", header(4, 3), "key/value heads"),
            ("few words", header(5, -258), "less than 259"),
            ("many words", header(5, -2**31), "bytes, but a model"),
            ("a large model", header(1, 2**31 - 1), "bytes, but a model"),
            ("NaN", model[:-4] + nan, "is no finite number"),
            ("NaN", model[:28] + nan + model[32:], 'element 0 of "embedding" is no finite number')):
        with open("damaged", "wb") as file:
            file.write(data)
        check_refused(found, message, "damaged", "tokenizer")
    for found, data, message in (
            ("no bytes", b"", "it has 0 bytes"),
            ("a part", tokenizer[:-3], "damaged, or of another model|are left"),
            ("a part", tokenizer[:2600], "too few for 300 tokens|before token|are left"),
            ("more", tokenizer + b"x", "1 bytes follow"),
            ("a length", tokenizer[:8] + struct.pack("<i", -1) + tokenizer[12:], "token 0 has -1 bytes"),
            ("a score", tokenizer[:4] + nan + tokenizer[8:], "the score of token 0")):
        with open("damaged", "wb") as file:
            file.write(data)
        error = run(GENERATE, "model", "damaged", status=2).stderr.decode()
        assert any(part in error for part in message.split("|")), f"{found}: {error}"
    check_refused("no file", "No such file", "nothing", "tokenizer")
    check_refused("a folder", "it has 0 bytes", ".", "tokenizer")
    check_refused("too many ranks", "only 5 key/value heads", "model", "tokenizer", "--tensor", 6)
    check_refused("a long text", "but the model has 64 positions", "model", "tokenizer", "x" * 100)
    check_refused("one file", "a model and its tokenizer are needed", "model")


def train(folder, data, tensor, *words):
    run(TRAIN, REFERENCE, "--data", data, "--tensor", tensor, "--steps", 12, "--report-every", 6, "--dim", 40,
        "--hidden", 53, "--layers", 2, "--heads", 10, "--kv-heads", 5, "--positions", 24, "--batch", 2,
        "--checkpoint", folder, "--export", folder, *words)


def check_training():
    """Resuming in the same mesh gives the same bits, and in another one nearly the same numbers."""
    for data, tensor in (1, 1), (1, 3), (2, 2):
        folder = f"{data}x{tensor}"
        train(folder, data, tensor)
        os.rename(f"{folder}/model.bin", "whole")
        last = [name for name in os.listdir(folder) if "12" in name]
        assert len(last) == 1, os.listdir(folder)
        os.remove(f"{folder}/{last[0]}")
        train(folder, data, tensor, "--resume")
        assert filecmp.cmp(f"{folder}/model.bin", "whole", shallow=False), f"resumed in {folder}"
        os.remove(f"{folder}/{last[0]}")
        train(folder, 1, 2, "--resume")
        with open(f"{folder}/model.bin", "rb") as one, open("whole", "rb") as other:
            bytes_of = one.read(), other.read()
        count = len(bytes_of[0]) // 4 - 7
        pairs = zip(*(struct.unpack(f"<{count}f", data[28:]) for data in bytes_of))
        difference = max(abs(a - b) for a, b in pairs)
        assert difference < 1e-3, f"{folder} resumed in 1x2: {difference}"
        files = f"{folder}/model.bin", f"{folder}/tokenizer.bin"
        alone = generate(*files, "the", "--tensor", 2)
        assert generate(*files, "the", "x", "--tensor", 2).startswith(alone), alone


def main():
    paths = [os.path.abspath(path) for path in (REFERENCE, GENERATE, LOGITS_TEST)]
    globals().update(zip(("REFERENCE", "GENERATE", "LOGITS_TEST"), paths))
    if TRAIN:
        globals()["TRAIN"] = os.path.abspath(TRAIN)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_texts()
        check_choices()
        check_damaged()
        if TRAIN:
            check_training()


main()
