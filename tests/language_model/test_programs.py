"""Runs generate and train (examples/language_model) on files of the Python reference.

The reference was written from a description of the formats alone. The texts and logits are the same, damaged
files are refused, and a training that is resumed has the same bits as one that was not interrupted.

    test_programs.py REFERENCE GENERATE TEST_LANGUAGE_MODEL [TRAIN]
"""

import filecmp
import importlib.util
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

REFERENCE, GENERATE, LOGITS_TEST = sys.argv[1:4]
TRAIN = sys.argv[4] if len(sys.argv) > 4 else None
WITHIN = 100  # seconds

specification = importlib.util.spec_from_file_location("reference", REFERENCE)
reference = importlib.util.module_from_spec(specification)
specification.loader.exec_module(reference)


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
            assert found == b"\n".join(wanted), f"{data} groups: {found} instead of {wanted}"
        with open("logits", "wb") as file:
            file.write(refer("logits", "model", "tokenizer", "the é and there"))
        run(LOGITS_TEST, "model", "logits")


def check_choices():
    """With a seed, a text does not depend on the other texts, on the ranks or on the cores."""
    refer("write", "model", "tokenizer", "--own-classifier", "--vocabulary", 600)
    core = {min(os.sched_getaffinity(0))}
    words = ["--temperature", 90, "--seed", 5]
    first = generate("model", "tokenizer", "the", "in", "there", "--tensor", 2, *words)
    for ranks in (["--tensor", 2, "--data", 3], ["--tensor", 1], ["--tensor", 5]):
        again = generate("model", "tokenizer", "the", "in", "there", *ranks, *words,
                         preexec_fn=lambda: os.sched_setaffinity(0, core))
        assert first == again, f"{ranks}: {first} and {again}"
    other = generate("model", "tokenizer", "the", "in", "there", "--temperature", 90, "--seed", 6)
    assert other != first, "a seed makes no difference"


def change_model(change, *names):
    """Rewrites the numbers of the arrays of "model" that are named, or of all."""
    sys.path.insert(0, os.path.dirname(REFERENCE))
    import reference  # pylint: disable=import-outside-toplevel
    with open("model", "rb") as file:
        head, data = file.read(28), bytearray(file.read())
    at = 0
    for name, count, rows, columns in reference.Header(*struct.unpack("<7i", head)).layout():
        length = count * rows * columns
        if not names or name in names:
            numbers = struct.unpack_from(f"<{length}f", data, at)
            struct.pack_into(f"<{length}f", data, at, *map(change, numbers))
        at += 4 * length
    with open("model", "wb") as file:
        file.write(head + data)


def round_to_bf16(number):
    """To nearest, and of two equally near ones to the one whose last bit is 0."""
    bits, = struct.unpack("<I", struct.pack("<f", number))
    rest = bits & 0xffff
    bits -= rest
    if rest > 0x8000 or (rest == 0x8000 and bits & 0x10000):
        bits += 0x10000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def check_bf16():
    """--bf16 is the same as a file whose matrices were rounded before, and is not the same as f32."""
    refer("write", "model", "tokenizer", "--own-classifier", "--vocabulary", 600, "--positions", 300)
    whole = generate("model", "tokenizer", "the")
    rounded = generate("model", "tokenizer", "the", "--bf16", "--tensor", 2)
    change_model(round_to_bf16, "embedding", "wq", "wk", "wv", "wo", "w1", "w2", "w3", "classifier")
    assert rounded == generate("model", "tokenizer", "the", "--tensor", 2) != whole, "--bf16"


def check_sampling():
    """A token has the share that the softmax gives it. Of equal logits the lowest token is taken.

    All weights are 0 but the embedding, so the logits of a token are the sums of the classifier's rows."""
    refer("write", "model", "tokenizer", "--own-classifier", "--vocabulary", 300)
    change_model(lambda number: 0.0)
    for tensor in 1, 2, 5:
        assert generate("model", "tokenizer", "--steps", 3, "--tensor", tensor) == b"<unk><unk><unk>\n"
    text = generate("model", "tokenizer", "--temperature", 100)
    assert len(set(text)) > 10, f"the random numbers of all positions are equal: {text}"
    change_model(lambda number: 1.0, "embedding", "rms_final")
    bell = 3 + 7  # the token of a byte that no other token has
    with open("model", "r+b") as file:  # the classifier is the last array, with 40 numbers for each token
        file.seek(-4 * 40 * (300 - bell), os.SEEK_END)
        file.write(struct.pack("<40f", *[6 / 40] * 40))
    for temperature in 100, 70:
        wanted = 1 / (1 + 299 * math.exp(-6 / (temperature / 100)))
        texts = [""] * 2000
        found = generate("model", "tokenizer", *texts, "--steps", 1, "--temperature", temperature,
                         "--tensor", 2).count(b"\7") / 2000
        assert abs(found - wanted) < 0.05, f"temperature {temperature}: {found} instead of {wanted}"


def check_speed():
    """The last line counts tokens, and says how fast they were."""
    refer("write", "model", "tokenizer", "--own-classifier")
    given = len(refer("encode", "model", "tokenizer", "the there").split())
    line = run(GENERATE, "model", "tokenizer", "the there", "--steps", 30).stderr.decode()
    found = re.fullmatch(r"(\d+) tokens given and (\d+) chosen, ([\d.]+) of both a second, ([\d.]+) % of the "
                         r"time in collectives\n", line)
    assert found is not None and int(found[1]) == given and float(found[3]) > 0, line
    assert int(found[1]) + int(found[2]) <= 31, line


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
            ("infinity", model[:-4] + struct.pack("<f", float("inf")), "is no finite number"),
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
    check_refused("a folder", "it is no file", ".", "tokenizer")
    check_refused("a folder", "it is no file", "model", ".")
    check_refused("too many ranks", "only 5 key/value heads", "model", "tokenizer", "--tensor", 6)
    check_refused("a long text", "but there are 64 positions", "model", "tokenizer", "xq" * 50)
    check_refused("a longer text", "more than 64 positions can have", "model", "tokenizer", "x" * 100000)
    check_refused("few steps", "but there are 2 positions", "model", "tokenizer", "xq", "--steps", 2)
    with open("/dev/full", "w") as full:
        done = subprocess.run([GENERATE, "model", "tokenizer"], stdout=full, stderr=subprocess.PIPE,
                              timeout=WITHIN, check=False)
        assert done.returncode == 2 and b"cannot be written" in done.stderr, done
    check_refused("one file", "a model and its tokenizer are needed", "model")


def train(folder, data, tensor, *words, **more):
    return run(TRAIN, REFERENCE, "--data", data, "--tensor", tensor, "--steps", 12, "--report-every", 6,
               "--dim", 40, "--hidden", 53, "--layers", 2, "--heads", 10, "--kv-heads", 5, "--positions", 24,
               "--batch", 2, "--checkpoint", folder, "--export", folder, *words, **more)


def losses(*words):
    """Returns the losses that a small training prints."""
    done = run(TRAIN, "repeated", "--dim", 32, "--hidden", 48, "--layers", 1, "--heads", 4, "--kv-heads", 2,
               "--positions", 32, "--steps", 80, "--report-every", 1, "--warm-up", 5, "--rate", 8000, *words)
    text = done.stdout.decode()
    found = [float(loss) for loss in re.findall(r"^step +\d+  loss ([\d.]+) ", text, re.M)]
    assert len(found) == 80, text
    return found


def check_learning():
    """The loss begins at that of a guess, and falls where the text can be learned. The mesh does not matter.
    A rate that rises slowly learns nothing."""
    with open("repeated", "w", encoding="ascii") as file:
        file.write("to be or not to be, that is the question. " * 50)
    one = losses("--export", "learned", "--steps", 80)
    text = generate("learned/model.bin", "learned/tokenizer.bin", "be or not", "--steps", 28)
    assert text.startswith(b" be or not to be, that"), text
    assert abs(one[0] - math.log(259)) < 0.3, one[0]
    assert one[-1] < 1, one[-1]
    for mesh in (["--tensor", 2], ["--data", 2], ["--data", 2, "--tensor", 2]):
        other = losses(*mesh)
        assert max(abs(a - b) for a, b in zip(one, other)) < 0.02, f"{mesh}: {one} and {other}"
    slow = losses("--warm-up", 1000000)
    assert slow[-1] > 0.97 * slow[0], slow


def exported(steps, rate, *words):
    """Trains that many steps, and returns the numbers of each array of the model."""
    run(TRAIN, REFERENCE, "--dim", 40, "--hidden", 53, "--layers", 2, "--heads", 10, "--kv-heads", 5,
        "--positions", 24, "--batch", 2, "--report-every", 1, "--warm-up", 0, "--steps", steps, "--rate",
        rate, "--export", "stepped", *words)
    with open("stepped/model.bin", "rb") as file:
        data, arrays, at = file.read(), {}, 28
    layout = reference.Header(*struct.unpack("<7i", data[:28])).layout()
    for name, *sizes in layout:
        arrays[name] = struct.unpack_from(f"<{math.prod(sizes)}f", data, at)
        at += 4 * math.prod(sizes)
    return arrays


def check_steps():
    """The first step of Adam changes each element by the rate, whatever its gradient is. What is beyond that
    is the decay, a tenth of the element in matrices and nothing in vectors. With 3 steps instead of 2, the
    rate of the second step is higher, along half a cosine from 1 to 0.1."""
    low, high = exported(1, 5000), exported(1, 10000)
    for name, elements in low.items():
        products = squares = 0
        for a, b in zip(elements, high[name]):
            change = (a - b) / 0.005
            before, beyond = a + 0.005 * change, change - math.copysign(1, change)
            if abs(beyond) < 0.5:  # it has a gradient
                products += beyond * before
                squares += before**2
        decay = products / squares if name != "rotations" else 0.1
        wanted = 0 if name.startswith("rms") else 0.1
        assert abs(decay - wanted) < 0.03, f"{name} decays by {decay}"
    first = exported(1, 5000)
    second = exported(2, 5000, "--checkpoint", "of_2")
    exported(3, 5000, "--checkpoint", "of_3")
    os.remove("of_3/checkpoint-3.h5")
    other = exported(2, 5000, "--checkpoint", "of_3", "--resume")
    ratios = sorted((c - a) / (b - a) for a, b, c in zip(first["wq"], second["wq"], other["wq"]) if b != a)
    wanted = (0.55 + 0.45 * math.cos(math.pi / 3)) / 0.55
    assert abs(ratios[len(ratios) // 2] - wanted) < 0.01, f"{ratios[len(ratios) // 2]}, not {wanted}"


def check_clipping():
    """Gradients are scaled down to the norm 1, whatever is sliced. The first step leaves a tenth of them as
    the first moments (h5dump is in hdf5-tools)."""
    if shutil.which("h5dump") is None:
        print("clipping is not looked at, which needs the package hdf5-tools")
        return
    for mesh in ([], ["--tensor", 3], ["--data", 2, "--tensor", 2]):
        shutil.rmtree("clipped", ignore_errors=True)
        exported(1, 5000, "--checkpoint", "clipped", *mesh)
        text = run("h5dump", "-y", "-g", "/adamw/m", "clipped/checkpoint-1.h5").stdout.decode()
        lists = re.findall(r"^ {6}DATA \{([^}]*)\}", text, re.M)  # deeper ones are attributes
        assert len(lists) == 12, text
        norm = math.sqrt(sum(float(number)**2 for numbers in lists for number in numbers.split(",")))
        assert abs(norm - 0.1) < 1e-5, f"{mesh}: the norm is {norm}"


def check_folders():
    """What a folder has, and wrong paths, never cost a training."""
    def refuses(words, message):
        error = train("folder", 1, 1, *words, status=2).stderr.decode()
        assert message in error, error

    refuses(["--layers", 1024, "--dim", 65520, "--hidden", 65536], "of memory, and the machine has")
    refuses(["--batch", 65536, "--positions", 10000, "--layers", 1024], "of memory, and the machine has")
    train("folder", 1, 1)
    refuses([], "add --resume")
    assert b"nothing is left to do: 12 steps" in train("folder", 1, 1, "--resume").stdout
    with open("file", "w", encoding="ascii"):
        refuses(["--resume", "--export", "file"], "it is no folder")
    os.remove("folder/model.bin")
    train("folder", 1, 1, "--resume", "--trace", "nothing/here", status=1)
    assert os.path.exists("folder/model.bin")


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
        check_bf16()
        check_sampling()
        check_speed()
        check_damaged()
        if TRAIN:
            check_steps()
            check_clipping()
            check_learning()
            check_training()
            check_folders()


main()
