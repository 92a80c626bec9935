package clustertest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var throughput = flag.Int("throughput", 0, "measure reading and writing of so many `MB` at each protection, beside Hadoop's client")

// TestThroughput writes and reads a file at each protection, in turn with
// Hadoop's own client: -put and -cat, less the time of a -ls, which is about the
// start of a JVM. One replica, blocks of 64 MB.
func TestThroughput(t *testing.T) {
	if *throughput == 0 {
		t.Log("only with -throughput")
		return
	}
	const pairs = 3
	for _, m := range []struct {
		daemons map[string]string
		data    string
		part    int // of the size: 3DES is slow
	}{
		{settings(aes, "false", ""), "authentication", 1},
		{settings(aes, "false", ""), "integrity", 1},
		{settings(aes, "false", ""), "privacy", 1},
		{settings("", "false", ""), "privacy", 8},
		{settings("", "true", "rc4"), "authentication", 1},
	} {
		become(t, m.daemons)
		size := *throughput << 20 / m.part
		want := content(6, size)
		local := filepath.Join(t.TempDir(), "input")
		if err := os.WriteFile(local, want, 0o644); err != nil {
			t.Fatal(err)
		}
		var took struct{ write, read, put, cat, ls []time.Duration }
		var mode string
		hadoop := func(args ...string) time.Duration {
			begin := time.Now()
			args = append([]string{"fs", "-D", "dfs.data.transfer.protection=" + m.data, "-D", "dfs.replication=1", "-D", "dfs.blocksize=67108864"}, args...)
			cmd, err := aliceCommand(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil { // what it prints goes to /dev/null
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			return time.Since(begin)
		}
		for range pairs {
			c := dial(t, map[string]string{"dfs.data.transfer.protection": m.data, "dfs.replication": "1", "dfs.blocksize": "67108864"})
			ours, theirs := home+"/ours", home+"/theirs"
			begin := time.Now()
			f, err := c.Create(t.Context(), ours, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(f, bytes.NewReader(want))
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			took.write = append(took.write, time.Since(begin))
			took.ls = append(took.ls, hadoop("-ls", home+"/ours"))
			took.put = append(took.put, hadoop("-put", local, theirs))
			begin = time.Now()
			r, err := c.Open(t.Context(), theirs)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{io.NewSectionReader(r, 0, r.Size())}, make([]byte, 1<<20)); n != int64(size) || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			r.Close()
			took.read = append(took.read, time.Since(begin))
			took.cat = append(took.cat, hadoop("-cat", ours))
			for _, name := range []string{ours, theirs} {
				if err := c.Remove(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			mode = keys(c.modes.seen)
		}
		ls := median(took.ls)
		rate := func(d time.Duration) string { return fmt.Sprintf("%6.1f", float64(size)/1e6/d.Seconds()) }
		fmt.Printf("%-34s write %s, Java %s; read %s, Java %s MB/s (%d MB, JVM %s, load %s)\n", mode,
			rate(median(took.write)), rate(median(took.put)-ls), rate(median(took.read)), rate(median(took.cat)-ls), size>>20, ls.Round(10*time.Millisecond), load())
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func keys(m map[string]int) string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	return strings.Join(list, " ")
}

func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
