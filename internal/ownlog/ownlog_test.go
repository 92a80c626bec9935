package ownlog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/ownlog"
)

const limit = 30 * time.Second

// place is where a log is copied to.
type place struct {
	mu    sync.Mutex
	text  strings.Builder
	fails int // so many appends fail
	hangs bool
}

func (p *place) append(ctx context.Context, text []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if p.fails > 0 {
		p.fails--
		return errors.New("it fails")
	}
	p.text.Write(text)
	return nil
}

func (p *place) has(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String() == text
}

func write(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestCopy: what is written appears in the copy, also after appending has failed, and at the
// end the rest does.
func TestCopy(t *testing.T) {
	file, p := filepath.Join(t.TempDir(), "stderr"), &place{fails: 2}
	write(t, file, "before\n")
	c := ownlog.Start(ownlog.Options{Append: p.append, First: time.Millisecond, Every: time.Millisecond, File: file})
	wait := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(limit); !p.has(want); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the copy is %q, want %q", p.text.String(), want)
			}
		}
	}
	wait("before\n")
	write(t, file, "then\n")
	wait("before\nthen\n")
	c.Stop("")

	c = ownlog.Start(ownlog.Options{Append: p.append, First: time.Hour, Every: time.Hour, File: file})
	p.text.Reset()
	write(t, file, "late\n")
	c.Stop("the error\n")
	wait("before\nthen\nlate\nthe error\n")
}

// TestTheCopyIsBounded: a log that grows for ever does not fill the store.
func TestTheCopyIsBounded(t *testing.T) {
	file, p := filepath.Join(t.TempDir(), "stderr"), &place{}
	write(t, file, strings.Repeat("0123456789abcde\n", 3<<20)) // 48 MiB
	ownlog.Start(ownlog.Options{Append: p.append, First: time.Hour, File: file}).Stop("")
	if text := p.text.String(); len(text) > 33<<20 || !strings.HasSuffix(text, "the rest is only in the log directory of this container ...]\n") {
		t.Errorf("copied are %d bytes, which end with %q", len(text), text[max(0, len(text)-100):])
	}
}

// TestAStoreThatHangsIsNotWaitedFor: nor is what is no file.
func TestAStoreThatHangsIsNotWaitedFor(t *testing.T) {
	file, p := filepath.Join(t.TempDir(), "stderr"), &place{hangs: true}
	write(t, file, "text\n")
	begin := time.Now()
	ownlog.Start(ownlog.Options{Append: p.append, First: time.Hour, File: file}).Stop("end\n")
	ownlog.Start(ownlog.Options{Append: p.append, First: time.Millisecond, Every: time.Millisecond, File: "/dev/null"}).Stop("end\n")
	ownlog.Start(ownlog.Options{Append: p.append, First: time.Millisecond, Every: time.Millisecond, File: file + ".none"}).Stop("end\n")
	if took := time.Since(begin); took > limit {
		t.Errorf("it has taken %s to end", took)
	}
}
