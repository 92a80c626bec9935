package submit

import (
	"io"
	"sync"
)

// Progress is told how many bytes of the job's files are uploaded, of how many that are
// known to be needed: files that are on the cluster already do not count. It is called
// after every piece, by one goroutine at a time.
type Progress func(done, total int64)

// transfer counts what is uploaded. A nil one counts nothing.
type transfer struct {
	tell Progress

	mu          sync.Mutex
	done, total int64
}

func newTransfer(tell Progress) *transfer {
	if tell == nil {
		return nil
	}
	return &transfer{tell: tell}
}

// expect adds bytes that are to be uploaded.
func (t *transfer) expect(n int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += n
}

// counted returns a writer to w whose bytes are counted.
func (t *transfer) counted(w io.Writer) io.Writer {
	if t == nil {
		return w
	}
	return countedWriter{w, t}
}

type countedWriter struct {
	to io.Writer
	t  *transfer
}

func (w countedWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.t.mu.Lock()
	defer w.t.mu.Unlock()
	w.t.done += int64(n)
	w.t.tell(w.t.done, max(w.t.done, w.t.total)) // a file may grow meanwhile
	return n, err
}
