package files

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/test/bench"
)

//go:embed metadata.py
var metadataScript string

// operations on names, in the order in which metadata.py does them, and as
// FsShell is asked for them.
var operations = []struct {
	name  string
	shell func(dir string, names func(prefix string) []string) []string
}{
	{"mkdir", func(dir string, names func(string) []string) []string {
		return append([]string{"-mkdir"}, names(dir+"/d")...)
	}},
	{"create", func(dir string, names func(string) []string) []string {
		return append([]string{"-touchz"}, names(dir+"/f")...)
	}},
	{"stat", func(dir string, names func(string) []string) []string {
		return append([]string{"-stat", "%n"}, names(dir+"/f")...)
	}},
	{"rename", func(dir string, names func(string) []string) []string {
		return append(append([]string{"-mv"}, names(dir+"/f")...), dir+"/d0")
	}},
	{"remove", func(dir string, names func(string) []string) []string {
		return append([]string{"-rm", "-skipTrash"}, names(dir+"/d0/f")...)
	}},
}

// Metadata compares operations on names, one after the other: a program's
// through the mount, and FsShell's, which has all names on one command line. It
// looks at each name before it does what it was asked for, as the kernel does.
func (b *Files) Metadata(ctx context.Context) error {
	const count, dir = 1000, "/bench-metadata"
	script := filepath.Join(b.Dir, "metadata.py")
	if err := os.WriteFile(script, []byte(metadataScript), 0o644); err != nil {
		return err
	}
	names := func(prefix string) []string {
		all := make([]string, count)
		for i := range all {
			all[i] = prefix + strconv.Itoa(i)
		}
		return all
	}
	ours, theirs := map[string]bench.Series{}, map[string]bench.Series{}
	for range b.Pairs {
		cmd := b.mounted(ctx, 2, b.Cluster.HDFS()+dir, `exec python3 "$@"`, script, strconv.Itoa(count))
		var out bytes.Buffer
		cmd.Stdout = &out
		if _, err := bench.Measure(cmd); err != nil {
			return err
		}
		for l := range strings.Lines(out.String()) {
			name, seconds, _ := strings.Cut(strings.TrimSpace(l), " ")
			took, err := strconv.ParseFloat(seconds, 64)
			if err != nil {
				return fmt.Errorf("%s printed %q", script, l)
			}
			ours[name] = append(ours[name], count/took)
		}
		started, err := b.jvm(ctx, 1)
		if err != nil {
			return err
		}
		for _, o := range operations {
			took, err := bench.Measure(b.shell(ctx, o.shell(dir, names)...))
			if err != nil {
				return err
			}
			theirs[o.name] = append(theirs[o.name], count/(took.Wall-started.Wall))
		}
		if _, err := bench.Measure(b.shell(ctx, "-rm", "-r", "-skipTrash", dir)); err != nil {
			return err
		}
	}
	b.Title("Operations on names, one after the other")
	for _, o := range operations {
		bench.Line(b.Out, o.name+", "+mount, ours[o.name].Format(" /s", 0))
		bench.Line(b.Out, o.name+", "+javaIO, theirs[o.name].Format(" /s", 0))
		bench.Line(b.Out, o.name+", ratio", bench.Ratios(ours[o.name], theirs[o.name]).Format("", 2))
	}
	fmt.Fprintln(b.Out)
	return nil
}
