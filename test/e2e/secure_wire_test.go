package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"
	"golang.org/x/sys/unix"

	"holdfast/internal/hadoop/token"
	"holdfast/proto"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// wire keeps what goes over the loopback interface, on which the whole cluster is.
type wire struct {
	fd     int
	frames bytes.Buffer // to be read after done
	done   chan struct{}
	end    []byte // the frame that ends it
	stop   func()
}

// listen begins to keep what goes by.
func listen(t *testing.T) *wire {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("looking at what goes over the network needs root: run the tests as root")
	}
	lo, err := net.InterfaceByName("lo")
	must(t, err)
	all := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(all))
	must(t, err)
	w := &wire{fd: fd, done: make(chan struct{}), end: []byte("the end of " + t.Name() + time.Now().String())}
	must(t, errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 256<<20),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: lo.Index}),
	))
	w.stop = sync.OnceFunc(func() {
		// What is sent now comes after all that was sent before.
		for ended := false; !ended; {
			conn, err := net.Dial("udp", "127.0.0.1:9")
			must(t, err)
			_, err = conn.Write(w.end)
			must(t, errors.Join(err, conn.Close()))
			select {
			case <-w.done:
				ended = true
			case <-time.After(time.Second): // it was dropped: others send much, too
			}
		}
		must(t, unix.Close(fd))
	})
	go w.keep()
	t.Cleanup(w.stop)
	return w
}

// keep reads frames until the last one. Each is seen twice on this interface, as
// it goes and as it comes.
func (w *wire) keep() {
	defer close(w.done)
	frame := make([]byte, 1<<17)
	for {
		n, from, err := unix.Recvfrom(w.fd, frame, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		if to, ok := from.(*unix.SockaddrLinklayer); ok && to.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		w.frames.Write(frame[:n])
		if bytes.Contains(frame[:n], w.end) {
			return
		}
	}
}

// seen ends the capture and counts the places at which something went by in clear.
func (w *wire) seen(what []byte) int {
	w.stop()
	return bytes.Count(w.frames.Bytes(), what)
}

// onTheWire looks at all that a job sends and has sent for it, from its submission
// on: with privacy there is nothing in it that is not everybody's. Without, all
// of it is there, so this looks at the right places.
func onTheWire(t *testing.T, c *testcluster.Cluster, private bool) {
	// Only the task puts the halves of these together: its command is not to be found.
	const checkpoint, line = "what a checkpoint is made of", "what a task has to say"
	ready := filepath.Join(t.TempDir(), "ready")
	w := listen(t)
	j := where{c}.start(t, "", "--principal", kdc.Alice, "--keytab", c.KDC().Keytab(kdc.Alice),
		"--worker", "1", "--worker-memory", "256m", "--checkpoint", "./logs="+c.HDFS()+"/user/alice/wire", "--", "sh", "-c", fmt.Sprintf(
			`for i in $(seq 500); do printf '%%s%%s\n' '%s' ', again'; done > logs/file; for i in $(seq 500); do printf '%%s%%s\n' '%s' ', again'; done; until [ -e %s ]; do sleep 0.1; done`,
			checkpoint, line, ready))
	j.said(long, "worker-0", line)
	type secret struct {
		name  string
		bytes []byte
	}
	all := []secret{
		{"a checkpoint", []byte(checkpoint + ", again")},
		{"a line of output", []byte(line + ", again")},
	}
	keys, err := keytab.Load(c.KDC().Keytab(kdc.Alice))
	must(t, err)
	all = append(all, secret{"the keytab's key", keys.Entries[0].Key.KeyValue})
	files, err := filepath.Glob(filepath.Join(c.Dir(), "yarn/*/local/nmPrivate", j.id, "container_*", "container_*.tokens"))
	must(t, err)
	if len(files) < 2 {
		t.Fatalf("credentials of containers: %q", files)
	}
	for _, f := range files {
		credentials, err := token.ReadFile(f)
		must(t, err)
		for _, k := range credentials.Tokens {
			all = append(all, secret{k.String(), k.Password})
		}
		for name, b := range credentials.Secrets {
			all = append(all, secret{name, b})
		}
	}
	must(t, os.WriteFile(ready, nil, 0o644))
	j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	if text := j.logs("worker-0"); !strings.Contains(text, line+", again") {
		t.Errorf("the task said %q", text)
	}
	for _, s := range all {
		switch n := w.seen(s.bytes); {
		case private && n > 0:
			t.Errorf("%s went over the network in clear %d times", s.name, n)
		case !private && n == 0:
			t.Errorf("%s did not go over the network in clear, and there was no privacy", s.name)
		default:
			t.Logf("%s was seen %d times in %d MB", s.name, n, w.frames.Len()>>20)
		}
	}
}
