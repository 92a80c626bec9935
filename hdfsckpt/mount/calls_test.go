package mount_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt"
	"holdfast/internal/hadoop/wire/common"
)

// counter passes connections on to a NameNode and counts the calls, by method.
// Each call is a length and two messages: RpcRequestHeaderProto, and
// RequestHeaderProto, which has the method's name (package rpc says more).
type counter struct {
	address string // its own
	mu      sync.Mutex
	calls   map[string]int
}

func countCalls(t *testing.T, nameNode string) *counter {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{address: l.Addr().String(), calls: map[string]int{}}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", nameNode)
			if err != nil {
				client.Close()
				continue
			}
			wg.Go(func() {
				defer client.Close()
				_, _ = io.Copy(client, server)
			})
			wg.Go(func() {
				defer server.Close()
				c.count(io.TeeReader(client, server))
			})
		}
	})
	return c
}

// count reads a connection: "hrpc", version, service class and kind of login, then
// calls.
func (c *counter) count(r io.Reader) {
	if _, err := io.ReadFull(r, make([]byte, 7)); err != nil {
		return
	}
	for {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(r, b); err != nil {
			return
		}
		header, n := protowire.ConsumeBytes(b)
		h := &common.RpcRequestHeaderProto{}
		if n < 0 || proto.Unmarshal(header, h) != nil || h.GetCallId() < 0 {
			continue // a ping, or what opens a connection
		}
		request, _ := protowire.ConsumeBytes(b[n:])
		m := &common.RequestHeaderProto{}
		if proto.Unmarshal(request, m) == nil {
			c.mu.Lock()
			c.calls[m.GetMethodName()]++
			c.mu.Unlock()
		}
	}
}

// of are the calls that something makes.
func (c *counter) of(do func()) map[string]int {
	c.mu.Lock()
	clear(c.calls)
	c.mu.Unlock()
	do()
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// hdfsCalls counts the NameNode's calls of one file, and of one save. How often
// complete asks goes by the DataNodes.
func hdfsCalls(t *testing.T, open func(nameNode string) hdfsckpt.Store, hdfs string) {
	u, err := url.Parse(hdfs)
	if err != nil {
		t.Fatal(err)
	}
	c := countCalls(t, u.Host)
	m, p := mountStore(t, open("hdfs://"+c.address)), newProcess(t)
	p.put(m.path("first"), "content") // makes the directory for what is written
	for _, name := range []string{"plain", "model.ckpt-3.data-00000-of-00001"} {
		got := c.of(func() { p.put(m.path(name), "content") })
		if got["complete"] >= 1 {
			got["complete"] = 1
		}
		want := map[string]int{"getFileInfo": 1, "create": 1, "addBlock": 1, "complete": 1, "rename2": 1}
		if !maps.Equal(got, want) {
			t.Errorf("a new file called %s takes the calls %v, want %v", name, got, want)
		}
	}
	got := c.of(func() { save(p, m.dir, 7, 1000) })
	total, text := 0, ""
	for _, method := range slices.Sorted(maps.Keys(got)) {
		total += got[method]
		text += fmt.Sprintf(" %s %d", method, got[method])
	}
	t.Logf("a save of two shards takes %d calls:%s", total, strings.TrimSpace(text))
	const files = 4
	if n := got["rename2"]; n > files+3 { // each to its name, and what the program renames
		t.Errorf("a save of %d files takes %d renames", files, n)
	}
	if n := total - got["complete"]; n > 60 {
		t.Errorf("a save of two shards takes %d calls besides complete", n)
	}
}
