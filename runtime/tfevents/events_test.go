package tfevents_test

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"holdfast/runtime/tfevents"
	"holdfast/test/bound"
	"holdfast/test/pyenv"
)

// writers write a loss that falls from 1 to 0.1 in steps 1 to 10, as TensorFlow 2 and 1 do,
// with what else an event file may have.
var writers = map[string]string{
	"TensorFlow 2": `
import sys
import tensorflow as tf
w = tf.summary.create_file_writer(sys.argv[1])
with w.as_default():
    tf.summary.write("about", "a run", step=0)
    for step in range(1, 11):
        tf.summary.write("loss", tf.constant((11 - step) / 10), step=step) # as tf.summary.scalar of tensorboard
        tf.summary.write("large", tf.random.uniform([300, 300]), step=step)
        tf.summary.write("weights", tf.random.normal([100]), step=step)
w.close()
`,
	"TensorFlow 1": `
import sys
import tensorflow.compat.v1 as tf
tf.disable_eager_execution()
loss = tf.placeholder(tf.float32, [])
merged = tf.summary.merge([tf.summary.scalar("loss", loss), tf.summary.histogram("weights", tf.random.normal([100]))])
with tf.Session() as s, tf.summary.FileWriter(sys.argv[1], s.graph) as w:
    for step in range(1, 11):
        w.add_summary(s.run(merged, {loss: (11 - step) / 10}), step)
`,
}

// TestEventFiles: scalars and steps are found in what TensorFlow writes, in whichever pieces
// it comes.
func TestEventFiles(t *testing.T) {
	python, err := pyenv.TensorFlow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range writers {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if out, err := exec.CommandContext(t.Context(), python, "-c", program, dir).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*tfevents*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%v: the files are %q", err, files)
			}
			text, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, piece := range []int{1, 7, 4096, len(text)} {
				e := &tfevents.Events{}
				for at := 0; at < len(text); at += piece {
					e.Write("events", int64(at), text[at:min(len(text), at+piece)])
				}
				got := e.TakeScalars()
				if len(got) != 1 || got[0].Name != "loss" || got[0].Count != 10 || float32(got[0].Last) != 0.1 || float32(got[0].Max) != 1 || math.Abs(got[0].Mean()-0.55) > 1e-6 {
					t.Errorf("in pieces of %d bytes: %+v", piece, got)
				}
				if step := e.Made().Step; step != 10 {
					t.Errorf("in pieces of %d bytes: the last step is %d", piece, step)
				}
				if len(e.TakeScalars()) != 0 {
					t.Error("scalars are taken twice")
				}
				e.Begin()
				if step := e.Made().Step; step != 0 {
					t.Errorf("at the next attempt's beginning the step is %d", step)
				}
			}
		})
	}
}

// TestStepsAreOfTheirEvents: writers keep events back, by default for minutes. A time that cannot
// be right is not taken.
func TestStepsAreOfTheirEvents(t *testing.T) {
	e := &tfevents.Events{}
	e.Begin()
	begun := time.Now()
	told := begun
	for told.UnixMicro() == begun.UnixMicro() { // events have microseconds
		told = time.Now()
	}
	var at int64
	for n, c := range []struct {
		told  time.Time
		taken bool
	}{{told, true}, {told.Add(-time.Hour), false}, {told.Add(time.Hour), false}, {time.Unix(0, 0), false}, {told, true}} {
		value := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "loss")
		value = protowire.AppendFixed32(protowire.AppendTag(value, 2, protowire.Fixed32Type), math.Float32bits(0.5))
		event := protowire.AppendTag(nil, 1, protowire.Fixed64Type)
		event = protowire.AppendFixed64(event, math.Float64bits(float64(c.told.UnixMicro())/1e6))
		event = protowire.AppendVarint(protowire.AppendTag(event, 2, protowire.VarintType), uint64(n+1))
		event = protowire.AppendBytes(protowire.AppendTag(event, 5, protowire.BytesType), protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), value))
		record := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
		sum := crc32.Checksum(record, crc32.MakeTable(crc32.Castagnoli))
		record = binary.LittleEndian.AppendUint32(record, (sum>>15|sum<<17)+0xa282ead8)
		record = append(append(record, event...), 0, 0, 0, 0)
		written := time.Now()
		e.Write("events", at, record)
		at += int64(len(record))
		m := e.Made()
		taken := m.At.UnixMicro() == c.told.UnixMicro()
		if m.Step != int64(n+1) || taken != c.taken || !taken && m.At.Before(written) {
			t.Errorf("step %d, told as of %s at %s, is step %d of %s", n+1, c.told, written, m.Step, m.At)
		}
	}
}

// TestWhatIsNoEventFile is left alone, and so is a file of which a part is not known.
func TestWhatIsNoEventFile(t *testing.T) {
	e := &tfevents.Events{}
	for at := range int64(100) {
		e.Write("text", at*10, []byte("loss: 0.5\n"))
	}
	e.Write("late", 1000, make([]byte, 1000))
	if got := e.TakeScalars(); len(got) != 0 || e.Made().Step != 0 {
		t.Errorf("%+v", got)
	}
}

// FuzzEventFiles: whatever is written, reading it ends, and values have names.
func FuzzEventFiles(f *testing.F) {
	recorded, err := os.ReadFile("testdata/loss.tfevents")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(recorded, 3)
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		defer bound.Memory(t, len(text), 64)()
		piece = max(piece, 1)
		e := &tfevents.Events{}
		for at := 0; at < len(text); at += piece {
			e.Write("events", int64(at), text[at:min(len(text), at+piece)])
		}
		for _, s := range e.TakeScalars() {
			if s.Name == "" || s.Count == 0 && !math.IsNaN(s.Last) && !math.IsInf(s.Last, 0) {
				t.Errorf("%+v", s)
			}
		}
	})
}
