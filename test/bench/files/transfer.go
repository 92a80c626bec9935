package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/test/bench"
)

const (
	client = "Holdfast's client"
	mount  = "Holdfast's mount"
	java   = "Hadoop's FsShell"
	javaIO = "FsShell, less its JVM's start"
	peer   = "colinmarc/hdfs"
)

// A transfer is measured with each of these.
var (
	parallels    = []int{1, 4}
	replications = []int{1, 3}
)

// transfers are files on this machine and on HDFS, and who writes or reads them.
type transfers struct {
	*Files
	local []string // the files
	each  int64    // their size in bytes
	fs    *hdfs.Client
}

const transferDir = "/bench"

// forFiles makes files of b.FileMB together, and calls do with them.
func (b *Files) forFiles(ctx context.Context, n int, do func(*transfers) error) error {
	dir, err := os.MkdirTemp(b.Dir, "files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t := &transfers{Files: b, each: int64(b.FileMB) << 20 / int64(n)}
	for i := range n {
		t.local = append(t.local, filepath.Join(dir, strconv.Itoa(i)))
		if err := noise(t.local[i], t.each, byte(i)); err != nil {
			return err
		}
	}
	c, err := conf.Load(b.Cluster.ConfDir())
	if err != nil {
		return err
	}
	if t.fs, err = hdfs.New(b.Cluster.HDFS(), c, hdfs.Options{}); err != nil {
		return err
	}
	defer t.fs.Close()
	if err := t.fs.MkdirAll(ctx, transferDir, 0o755); err != nil {
		return err
	}
	return do(t)
}

// noise writes a file that does not compress.
func noise(path string, size int64, seed byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{seed}), size)
	return errors.Join(err, f.Close())
}

func (t *transfers) uri() string { return t.Cluster.HDFS() + transferDir }

// remote are the files' names on HDFS, after a prefix.
func (t *transfers) remote(prefix string) []string {
	var all []string
	for _, f := range t.local {
		all = append(all, prefix+"/"+filepath.Base(f))
	}
	return all
}

// check sees that all files are there whole; then remove takes them away.
func (t *transfers) check(ctx context.Context) error {
	for _, f := range t.remote(transferDir) {
		st, err := t.fs.Stat(ctx, f)
		if err != nil {
			return err
		}
		if st.Size != t.each {
			return fmt.Errorf("%s has %d bytes instead of %d", f, st.Size, t.each)
		}
	}
	return nil
}

func (t *transfers) remove(ctx context.Context) error {
	for _, f := range t.remote(transferDir) {
		if err := t.fs.Remove(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// copies has dd copy all its arguments at the same time, from one directory to
// another or to nowhere, with programs' usual megabyte at a time.
const copies = `
jobs=()
for f in "$@"; do dd if="$f" of=%s bs=1M status=none & jobs+=($!); done
for j in "${jobs[@]}"; do wait $j; done
`

func (t *transfers) writers(ctx context.Context, replication int) map[string][]*exec.Cmd {
	r := strconv.Itoa(replication)
	return map[string][]*exec.Cmd{
		client: {t.program(ctx, "ours", append([]string{"-replication", r, "put", t.uri()}, t.local...)...)},
		mount:  {t.mounted(ctx, replication, t.uri(), fmt.Sprintf(copies, `"${f##*/}"`), t.local...)},
		java: {t.shell(ctx, append(append([]string{"-D", "dfs.replication=" + r, "-put", "-t", strconv.Itoa(len(t.local))},
			t.local...), t.uri())...)},
		peer: {t.program(ctx, "peer", append([]string{"-replication", r, "put", t.uri()}, t.local...)...)},
	}
}

// readers drop what they read. FsShell reads one file after the other, so that
// there is one for each.
func (t *transfers) readers(ctx context.Context, replication int) map[string][]*exec.Cmd {
	var shells []*exec.Cmd
	for _, uri := range t.remote(t.uri()) {
		cmd := t.shell(ctx, "-cat", uri)
		cmd.Stdout = nowhere
		shells = append(shells, cmd)
	}
	return map[string][]*exec.Cmd{
		client: {t.program(ctx, "ours", append([]string{"get"}, t.remote(t.uri())...)...)},
		mount:  {t.mounted(ctx, replication, t.uri(), fmt.Sprintf(copies, "/dev/null"), t.remote(".")...)},
		java:   shells,
		peer:   {t.program(ctx, "peer", append([]string{"get"}, t.remote(t.uri())...)...)},
	}
}

// nowhere is a descriptor, so that no output goes through this process.
var nowhere, _ = os.OpenFile(os.DevNull, os.O_WRONLY, 0)

var contestants = []string{client, mount, java, peer}

// Write compares writing files, with their reading from the local disk's cache.
func (b *Files) Write(ctx context.Context) error {
	return b.transfer(ctx, "Writing", 1.0, func(t *transfers, replication int) (map[string]bench.Usages, error) {
		return t.rounds(ctx, func() map[string][]*exec.Cmd { return t.writers(ctx, replication) }, func() error {
			return errors.Join(t.check(ctx), t.remove(ctx))
		})
	})
}

// Read compares reading files that the DataNodes' kernels have in memory.
func (b *Files) Read(ctx context.Context) error {
	return b.transfer(ctx, "Reading", 0.8, func(t *transfers, replication int) (_ map[string]bench.Usages, err error) {
		if _, err := bench.Measure(t.writers(ctx, replication)[client]...); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, t.remove(ctx)) }()
		return t.rounds(ctx, func() map[string][]*exec.Cmd { return t.readers(ctx, replication) }, func() error { return nil })
	})
}

// transfer measures each combination, and reports.
func (b *Files) transfer(ctx context.Context, what string, aim float64, do func(t *transfers, replication int) (map[string]bench.Usages, error)) error {
	for _, n := range parallels {
		err := b.forFiles(ctx, n, func(t *transfers) error {
			for _, replication := range replications {
				took, err := do(t, replication)
				if err != nil {
					return err
				}
				b.Title(fmt.Sprintf("%s %d MB in %d at the same time, replication %d", what, b.FileMB, n, replication))
				b.compare(took, float64(b.FileMB)/1024, aim)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rounds runs all contestants one after the other, again and again; after each
// it calls done. The first round warms the caches and does not count.
func (t *transfers) rounds(ctx context.Context, make func() map[string][]*exec.Cmd, done func() error) (map[string]bench.Usages, error) {
	took := map[string]bench.Usages{}
	for round := range t.Pairs + 1 {
		all := make()
		for _, name := range contestants {
			u, err := bench.Measure(all[name]...)
			if err != nil {
				return nil, err
			}
			if err := done(); err != nil {
				return nil, err
			}
			if round > 0 {
				took[name] = append(took[name], u)
			}
		}
		started, err := t.jvm(ctx, len(all[java]))
		if err != nil {
			return nil, err
		}
		if round > 0 {
			last := took[java][round-1]
			took[javaIO] = append(took[javaIO], bench.Usage{Wall: last.Wall - started.Wall, CPU: last.CPU - started.CPU})
		}
	}
	return took, nil
}

// compare prints all contestants, and ours against Hadoop's own.
func (b *Files) compare(took map[string]bench.Usages, gb, aim float64) {
	for _, name := range []string{client, mount, peer, java, javaIO} {
		var perGB bench.Series
		for _, u := range took[name] {
			perGB = append(perGB, u.CPU/gb)
		}
		bench.Line(b.Out, name, took[name].Wall().Format(" s", 2)+"; processors "+perGB.Format(" s/GB", 2))
	}
	for _, name := range []string{client, mount} {
		for _, against := range []string{java, javaIO, peer} {
			r := bench.Ratios(took[name].Wall(), took[against].Wall())
			c := bench.Ratios(took[name].CPU(), took[against].CPU())
			text := r.Format("", 2) + "; processors " + c.Format("", 2)
			if against == java {
				text = r.Aimed("", 2, aim) + "; processors " + c.Aimed("", 2, 1)
			}
			bench.Line(b.Out, name+" : "+against, text)
		}
	}
	fmt.Fprintln(b.Out)
}
