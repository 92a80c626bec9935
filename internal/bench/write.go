package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writer is the task: for each file go-N that appears it copies the input into
// the mount, and writes into took-N when it began and when the copy was closed.
const writer = `
n=0
while true; do
  until [ -e %[1]s/go-$n ]; do sleep 0.05; done
  begin=$EPOCHREALTIME
  dd if=%[1]s/input of=./mount/ours-$n bs=256k status=none || exit 1
  echo $begin $EPOCHREALTIME > %[1]s/.took-$n
  mv %[1]s/.took-$n %[1]s/took-$n
  n=$((n+1))
done
`

// write compares writing a file through the mount with FsShell's -put of the
// same file. The time of -put is that of its process; its JVM's start, as
// measured with an -ls, is also told apart.
func (b *bench) write(ctx context.Context) error {
	const aim = 1.1
	dir, err := os.MkdirTemp(b.dir, "write-")
	if err != nil {
		return err
	}
	input := filepath.Join(dir, "input")
	if err := noise(input, int64(b.FileMB)<<20); err != nil {
		return err
	}
	script := filepath.Join(dir, "writer.sh")
	if err := os.WriteFile(script, fmt.Appendf(nil, writer, dir), 0o755); err != nil {
		return err
	}
	store := b.cluster.HDFS() + "/tmp/bench"
	job, err := b.run(ctx, "--worker", "1", "--worker-memory", "512m", "--checkpoint", "./mount="+store, "--", "bash", script)
	if err != nil {
		return err
	}
	var ours, theirs, started series
	for i := -1; i < b.Pairs; i++ { // the first pair warms the caches
		mine, err := b.writeOurs(ctx, dir, i+1)
		if err != nil {
			return b.explain(ctx, job, err)
		}
		empty, err := b.timeHadoop(ctx, "fs", "-ls", "/")
		if err != nil {
			return err
		}
		put, err := b.timeHadoop(ctx, "fs", "-put", input, fmt.Sprintf("%s/theirs-%d", store, i+1))
		if err != nil {
			return err
		}
		if i >= 0 {
			ours, theirs, started = append(ours, mine), append(theirs, put), append(started, put-empty)
		}
		// Space, and that it was all written.
		if _, err := b.cluster.Hadoop(ctx, "fs", "-test", "-s", fmt.Sprintf("%s/ours-%d", store, i+1)); err != nil {
			return err
		}
		if _, err := b.cluster.Hadoop(ctx, "fs", "-rm", "-skipTrash", fmt.Sprintf("%s/*-%d", store, i+1)); err != nil {
			return err
		}
	}
	if err := b.kill(ctx, job); err != nil {
		return err
	}
	r := ratios(ours, theirs)
	title(b.Out, fmt.Sprintf("Writing %d MB, replication 2", b.FileMB))
	line(b.Out, "through the mount", ours.format(" s", 2))
	line(b.Out, "hdfs dfs -put", theirs.format(" s", 2))
	line(b.Out, "hdfs dfs -put, less an -ls", started.format(" s", 2))
	line(b.Out, "ratio", against(r.format("", 2), r.median(), aim, ""))
	line(b.Out, "ratio, less an -ls", ratios(ours, started).format("", 2))
	fmt.Fprintln(b.Out)
	return nil
}

func (b *bench) writeOurs(ctx context.Context, dir string, n int) (float64, error) {
	if err := os.WriteFile(fmt.Sprintf("%s/go-%d", dir, n), nil, 0o644); err != nil {
		return 0, err
	}
	var took float64
	err := poll(ctx, 5*time.Minute, "the task to write its file", func() (bool, error) {
		text, err := os.ReadFile(fmt.Sprintf("%s/took-%d", dir, n))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		fields := strings.Fields(string(text))
		if len(fields) != 2 {
			return false, fmt.Errorf("the task wrote %q", text)
		}
		begin, err := parseTime(fields[0])
		if err != nil {
			return false, err
		}
		end, err := parseTime(fields[1])
		took = end.Sub(begin).Seconds()
		return true, err
	})
	return took, err
}

func (b *bench) timeHadoop(ctx context.Context, args ...string) (float64, error) {
	began := time.Now()
	_, err := b.cluster.Hadoop(ctx, args...)
	return time.Since(began).Seconds(), err
}

// noise writes a file that does not compress.
func noise(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(f, rand.NewChaCha8([32]byte{1}), size); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
