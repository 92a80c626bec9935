package hdfs_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
)

// TestNamesThatAreNotUTF8: whatever is done with such a name is refused before the NameNode hears
// of it, which would take the name for that of another file.
func TestNamesThatAreNotUTF8(t *testing.T) {
	c, err := hdfs.New("hdfs://127.0.0.1:1", conf.New(nil), hdfs.Options{}) // nobody is there
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const good, bad = "/mod\u00e8le", "/mod\xe8le"
	all, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for what, do := range map[string]func(ctx context.Context) error{
		"stat":           func(ctx context.Context) error { _, err := c.Stat(ctx, bad); return err },
		"access":         func(ctx context.Context) error { return c.Access(ctx, bad, 4) },
		"list":           func(ctx context.Context) error { _, err := c.List(ctx, bad); return err },
		"mkdir":          func(ctx context.Context) error { return c.Mkdir(ctx, bad, 0o755) },
		"mkdir, parents": func(ctx context.Context) error { return c.MkdirAll(ctx, bad, 0o755) },
		"rename":         func(ctx context.Context) error { return c.Rename(ctx, bad, good) },
		"rename to":      func(ctx context.Context) error { return c.Rename(ctx, good, bad) },
		"rename new":     func(ctx context.Context) error { return c.RenameNew(ctx, good, bad) },
		"remove":         func(ctx context.Context) error { return c.Remove(ctx, bad) },
		"chmod":          func(ctx context.Context) error { return c.Chmod(ctx, bad, 0o644) },
		"chtimes":        func(ctx context.Context) error { return c.Chtimes(ctx, bad, time.Now(), time.Now()) },
		"create":         func(ctx context.Context) error { _, err := c.Create(ctx, bad, 0o644); return err },
		"append":         func(ctx context.Context) error { _, err := c.Append(ctx, bad); return err },
		"open":           func(ctx context.Context) error { _, err := c.Open(ctx, bad); return err },
		"quota":          func(ctx context.Context) error { _, err := c.Quota(ctx, bad); return err },
	} {
		err := do(all)
		if !errors.Is(err, syscall.EILSEQ) || hdfs.Errno(err) != syscall.EILSEQ || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "only names that are UTF-8") {
			t.Errorf("%s: %v", what, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Stat(ctx, good); err == nil || errors.Is(err, syscall.EILSEQ) {
		t.Errorf("a name that is UTF-8: %v", err)
	}
}
