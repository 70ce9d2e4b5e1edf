"""Reads a checkpoint of train_digits with h5py, and its header with h5dump. Both must find datasets named
like the variables.

usage: check_h5.py PROGRAM REPLICAS
The exit status is 77 (skipped) if h5py or h5dump is missing."""
import shutil, subprocess, sys, tempfile

try:
    import h5py
except ImportError:
    h5py = None
if h5py is None or shutil.which("h5dump") is None:
    print("skipped, needs packages hdf5-tools python3-h5py")
    sys.exit(77)

program, replicas = sys.argv[1:3]
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([program, "--replicas", replicas, "--epochs", "2", "--checkpoint", folder], check=True,
                   stdout=subprocess.DEVNULL)
    path = folder + "/checkpoint-90.h5" # 2 epochs of 45 batches
    with h5py.File(path, "r") as file:
        assert file.attrs["ditto_step"] == 90 and file.attrs["ditto_version"], dict(file.attrs)
        weights, momentum = file["weights"], file["sgd/momentum/weights"]
        assert weights.dtype == "float32" and weights.shape == momentum.shape and weights.ndim == 1
        assert abs(weights[:]).max() > 0 and abs(momentum[:]).max() > 0
        # Each of the two epochs has 1438 rows in batches of 32.
        assert file["sgd/iterations"][()] == 2 * 45, file["sgd/iterations"][()]
        loss = file["loss"].attrs
        assert loss["synchronization"] == b"ON_READ" and loss["aggregation"] == b"SUM"
        least, most = weights[:].min(), weights[:].max()
        print(f"h5py: {sorted(file)}, weights {weights.shape} from {least:.3f} to {most:.3f}")
    header = subprocess.run(["h5dump", "-H", path], check=True, capture_output=True, text=True).stdout
    names = ("weights", "iterations", "loss", "hits", "rows")
    assert all(f'DATASET "{name}"' in header for name in names), header
    print(f"h5dump: {header.count('DATASET')} datasets")
