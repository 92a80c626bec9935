package mount_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"holdfast/test/pyenv"
)

// pythonWrites saves and reads with real libraries; pythonReads checks it
// through another mount.
const pythonWrites = `
import json, os, pathlib, pickle, shutil, sqlite3, sys, tarfile, tempfile, zipfile
import h5py, numpy as np

os.chdir(sys.argv[1])
big = np.arange(1_000_000, dtype=np.float32)

np.savez("a.npz", big=big, small=np.ones(3))
np.savez_compressed("c.npz", big=big)
np.save("a.npy", big)
assert np.load("a.npy", mmap_mode="r")[999_999] == 999_999
m = np.memmap("m.dat", dtype=np.int64, mode="w+", shape=(100_000,))
m[:] = np.arange(100_000)
m.flush()
del m
m = np.memmap("m.dat", dtype=np.int64, mode="r+", shape=(100_000,))
m[7] = -7
del m

with h5py.File("a.h5", "w") as f:
    f["x"] = big
    f.create_group("layers/dense")["kernel"] = np.eye(300)
    f.create_dataset("grows", (0,), maxshape=(None,), chunks=(1000,))
with h5py.File("a.h5", "a") as f:
    f["grows"].resize((5000,))
    f["grows"][:] = 5
    del f["x"]
    f["y"] = big[:10]
    f.attrs["step"] = 24
with h5py.File("a.h5", "r+") as f:
    f["layers/dense/kernel"][0, 0] = 42

with open("state.pkl.tmp", "wb") as f:
    pickle.dump({"step": 24}, f)
    f.flush()
    os.fsync(f.fileno())
os.replace("state.pkl.tmp", "state.pkl")
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
    json.dump({"step": 24}, f)
os.rename(f.name, "state.json")
with tempfile.TemporaryFile(dir=".") as f: # O_TMPFILE, or a name that is removed at once
    f.write(b"x" * 100_000)
    f.seek(10)
    assert f.read(3) == b"xxx"

os.makedirs("tree/a/b")
pathlib.Path("tree/a/b/f").write_text("deep")
shutil.copytree("tree", "copy")
shutil.copy2("a.npy", "copy/a.npy")
shutil.move("tree", "moved")
with zipfile.ZipFile("z.zip", "w") as z:
    z.write("a.npy")
with zipfile.ZipFile("z.zip", "a") as z:
    z.writestr("more", "appended")
with tarfile.open("t.tar.gz", "w:gz") as t:
    t.add("moved")

db = sqlite3.connect("trials.db")
db.execute("create table t (i integer)")
for i in range(20):
    with db:
        db.execute("insert into t values (?)", (i,))
db.close()

for i in range(3):
    with open("log.txt", "a") as f:
        print("line", i, file=f)
shutil.rmtree("copy")
`

const pythonReads = `
import json, os, pickle, sqlite3, sys, tarfile, zipfile
import h5py, numpy as np

os.chdir(sys.argv[1])
big = np.arange(1_000_000, dtype=np.float32)
for name in "a.npz", "c.npz":
    assert (np.load(name)["big"] == big).all(), name
assert (np.load("a.npy", mmap_mode="r") == big).all()
m = np.memmap("m.dat", dtype=np.int64, mode="r")
assert m[7] == -7 and m[99_999] == 99_999 and m[6] == 6
with h5py.File("a.h5", "r") as f:
    assert "x" not in f and (f["y"][:] == big[:10]).all() and f.attrs["step"] == 24
    assert f["layers/dense/kernel"][0, 0] == 42 and (f["grows"][:] == 5).all()
assert pickle.load(open("state.pkl", "rb")) == json.load(open("state.json")) == {"step": 24}
assert zipfile.ZipFile("z.zip").testzip() is None
assert zipfile.ZipFile("z.zip").read("more") == b"appended"
assert tarfile.open("t.tar.gz").extractfile("moved/a/b/f").read() == b"deep"
assert sqlite3.connect("trials.db").execute("select sum(i) from t").fetchone() == (190,)
assert open("log.txt").read() == "line 0\nline 1\nline 2\n"
found = sorted(os.listdir("."))
assert found == sorted(["a.npz", "c.npz", "a.npy", "m.dat", "a.h5", "state.pkl", "state.json",
    "moved", "z.zip", "t.tar.gz", "trials.db", "log.txt"]), found
`

// TestPythonLibraries: what NumPy, h5py, SQLite and Python's own library write
// is there, for another task too.
func TestPythonLibraries(t *testing.T) {
	m1, m2, _, _, dir := twoMounts(t)
	python(t, pythonWrites, m1.dir)
	python(t, pythonReads, m2.dir)
	noLeftovers(t, dir)
}

func python(t *testing.T, script, dir string) {
	t.Helper()
	// The environment may have to be made first.
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	python, err := pyenv.TensorFlow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, python, "-c", script, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
