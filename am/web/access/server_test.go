package access_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/am/web/access"
)

// One who asks for the page slowly, or for too much, does not keep a connection.
func TestThePageHasLimits(t *testing.T) {
	server := access.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	for name, d := range map[string]time.Duration{
		"header": server.ReadHeaderTimeout, "request": server.ReadTimeout, "answer": server.WriteTimeout, "silence": server.IdleTimeout,
	} {
		if d <= 0 || d > 2*time.Minute {
			t.Errorf("%s: %v", name, d)
		}
	}
	server.ReadTimeout = 100 * time.Millisecond
	s := httptest.NewUnstartedServer(nil)
	s.Config = server
	s.Start()
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nslow"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("the connection stays: %v", err)
	}
	r, err := http.NewRequest(http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X", strings.Repeat("x", 128<<10))
	if a, err := http.DefaultClient.Do(r); err == nil {
		a.Body.Close()
		if a.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("headers of 128 KB: %s", a.Status)
		}
	}
}

// endless is a listener to which connections come without end, until it is closed.
type endless struct {
	net.Listener
	closed *atomic.Bool
}

func (e endless) Accept() (net.Conn, error) {
	if e.closed.Load() {
		return nil, net.ErrClosed
	}
	_, conn := net.Pipe()
	return conn, nil
}

func (e endless) Close() error { e.closed.Store(true); return nil }

// TestThePageHasFewConnections: whoever can reach its port cannot use up the files that the process
// needs for its agents.
func TestThePageHasFewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := access.Limited(endless{closed: new(atomic.Bool)})
		open := make(chan net.Conn, 10_000)
		go func() {
			for len(open) < cap(open) {
				conn, err := l.Accept()
				if err != nil {
					break
				}
				open <- conn
			}
			close(open)
		}()
		synctest.Wait()
		most := len(open)
		if most < 100 || most > 1000 {
			t.Fatalf("%d connections are open", most)
		}
		for range 10 {
			(<-open).Close()
		}
		if synctest.Wait(); len(open) != most {
			t.Errorf("where 10 of %d connections have ended, %d are open", most, len(open))
		}
		l.Close()
		for conn := range open {
			conn.Close()
		}
	})
}
