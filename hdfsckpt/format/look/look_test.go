package look_test

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
)

// TestExceededIsNotDamaged: what a parser says of a file is that it is damaged; that it exceeds a
// bound names the file, its size and the bound, and is noted for who judges the checkpoint.
func TestExceededIsNotDamaged(t *testing.T) {
	s, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := store.WriteFile(t.Context(), s, "a", []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	little := func(io.ReaderAt, int64) (int64, error) { return 10, nil }
	much := func(io.ReaderAt, int64) (int64, error) { return 1 << 50, nil }
	cut := errors.New("it is cut off")
	if err := look.Damaged(limit.Exceeded("it has 9 names")); look.IsDamaged(err) || !limit.IsExceeded(err) {
		t.Errorf("what was not read is called damaged: %v", err)
	}
	for name, x := range map[string]struct {
		memory            look.Memory
		says              error
		damaged, exceeded bool
	}{
		"whole":                {little, nil, false, false},
		"damaged":              {little, cut, true, false},
		"names too much":       {little, limit.Exceeded("it has 9 names, and up to 8 are read"), false, true},
		"takes too much":       {much, nil, false, true},
		"is called damage too": {little, look.Damaged(limit.Exceeded("it has 9 names")), false, true},
	} {
		ctx, note := look.Noting(t.Context())
		err := look.File(ctx, s, "a", x.memory, func(r io.ReaderAt, size int64) error {
			b := make([]byte, size)
			if _, err := r.ReadAt(b, 0); err != nil || string(b) != "content" {
				t.Errorf("%s: read is %q, %v", name, b, err)
			}
			return x.says
		})
		if look.IsDamaged(err) != x.damaged || limit.IsExceeded(err) != x.exceeded || (err == nil) != (!x.damaged && !x.exceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if noted := note.Exceeded(); (noted != nil) != x.exceeded || x.exceeded && !strings.Contains(noted.Error(), "a, of 7 bytes, is not looked into") {
			t.Errorf("%s: noted is %v", name, noted)
		}
	}
}

// TestFilesWaitForMemory: however many files are looked into at once, they take no more memory
// together than the process has for that.
func TestFilesWaitForMemory(t *testing.T) {
	s, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := store.WriteFile(t.Context(), s, "a", []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	const fit = 3 // of this size in a GiB, which a process has whose memory is not limited
	memory := func(io.ReaderAt, int64) (int64, error) { return 300 << 20, nil }
	in, leave := make(chan struct{}, 2*fit), make(chan struct{})
	var wg sync.WaitGroup
	for range 2 * fit {
		wg.Go(func() {
			if err := look.File(t.Context(), s, "a", memory, func(io.ReaderAt, int64) error { in <- struct{}{}; <-leave; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	for range fit {
		<-in
	}
	select {
	case <-in:
		t.Error("one more is looked into")
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	wg.Wait()
}

// TestJSON: what is no JSON is damaged, and what is larger than what is read exceeds a bound.
func TestJSON(t *testing.T) {
	s, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for text, damaged := range map[string]bool{`{"a":3}`: false, `{"a"`: true, "": true} {
		if err := store.WriteFile(t.Context(), s, "a", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var got struct{ A int }
		if err := look.JSON(t.Context(), s, "a", &got); look.IsDamaged(err) != damaged || !damaged && got.A != 3 {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
