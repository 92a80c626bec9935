package access_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
