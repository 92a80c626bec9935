package tcp

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"holdfast/test/silence"
)

// TestASilentHost: both who waits for an answer and who only listens are told.
func TestASilentHost(t *testing.T) {
	for name, send := range map[string]bool{"after a request": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			silent := silence.Listener(l)
			conn, err := Dialer(time.Minute, 4*time.Second).DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			other, err := silent.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			if err := silent.Fall(); err != nil {
				t.Fatal(err)
			}
			if send {
				if _, err := conn.Write([]byte("request")); err != nil {
					t.Fatal(err)
				}
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, err = io.ReadAll(conn)
			if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection to a silent host ends with %v", err)
			}
		})
	}
}
