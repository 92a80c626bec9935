package clustertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/defaults"
	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/notice"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// forwarder passes connections on to an address, and keeps what goes by.
type forwarder struct {
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu       sync.Mutex
	captured bytes.Buffer
}

func forward(t *testing.T, to string) *forwarder {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{l: l, to: to}
	f.wg.Go(f.serve)
	t.Cleanup(func() {
		l.Close()
		f.wg.Wait()
	})
	return f
}

func (f *forwarder) port() int { return f.l.Addr().(*net.TCPAddr).Port }

func (f *forwarder) serve() {
	for {
		in, err := f.l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", f.to)
		if err != nil {
			in.Close()
			continue
		}
		for _, way := range []struct{ from, to net.Conn }{{in, out}, {out, in}} {
			f.wg.Go(func() {
				_, _ = io.Copy(io.MultiWriter(way.to, f), way.from)
				way.to.Close()
			})
		}
	}
}

// Write keeps a piece that goes by; the directions may mix, a piece does not.
func (f *forwarder) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.captured.Write(b)
}

// has counts the places at which something goes over the wire in clear.
func (f *forwarder) has(s string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Count(f.captured.Bytes(), []byte(s))
}

// TestCapture looks at the wire: under privacy neither the content of a file
// passes in clear nor its name; under the lesser protections both do, so that
// this test looks at the right place.
func TestCapture(t *testing.T) {
	become(t, settings(aes, "false", ""))
	for _, c := range []struct {
		rpc, data         string
		nameClear, inData bool
	}{
		{"authentication", "authentication", true, true},
		{"integrity", "integrity", true, true},
		{"privacy", "privacy", false, false},
		{"authentication", "privacy", true, false},
	} {
		t.Run("RPC "+c.rpc+", data "+c.data, func(t *testing.T) {
			const name = home + "/captured-file"
			hadoop, err := conf.Load(cluster.ConfDir())
			if err != nil {
				t.Fatal(err)
			}
			hadoop.Set("hadoop.rpc.protection", c.rpc)
			hadoop.Set("dfs.data.transfer.protection", c.data)
			qop, err := hadoop.RPCProtection()
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(cluster.HDFS())
			if err != nil {
				t.Fatal(err)
			}
			toNameNode := forward(t, u.Host)
			nn := nameNode(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(toNameNode.port())), qop)
			d, err := transfer.New(nn, defaults.New(nn), hadoop, notice.None)
			if err != nil {
				t.Fatal(err)
			}
			var toDataNode *forwarder
			w := write.New(nn, write.Options{Replication: 1, Dial: func(ctx context.Context, node *wire.DatanodeIDProto, k *wire.BlockTokenProto) (net.Conn, error) {
				toDataNode = forward(t, net.JoinHostPort(node.GetIpAddr(), strconv.Itoa(int(node.GetXferPort()))))
				node = pb.Clone(node).(*wire.DatanodeIDProto)
				node.XferPort = pb.Uint32(uint32(toDataNode.port()))
				return d.Dial(ctx, node, k)
			}})
			want := content(9, 300_000)
			f, err := w.Create(t.Context(), name, 0o644, true)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write(want)
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			same(t, "the file", dial(t, nil).read(t, name), want)

			if n := toNameNode.has("captured-file"); (n > 0) != c.nameClear {
				t.Errorf("the file's name went to or from the NameNode in clear %d times", n)
			}
			if n := toDataNode.has(marker); (n > 0) != c.inData {
				t.Errorf("the content went to the DataNode in clear %d times", n)
			}
			if total := len(toDataNode.captured.Bytes()); total < len(want) {
				t.Errorf("only %d bytes were captured", total)
			}
		})
	}
}

// nameNode calls ClientProtocol with the token that TestMain has fetched.
func nameNode(t *testing.T, address string, qop []string) *rpc.Client {
	t.Helper()
	credentials, err := token.FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	k, ok := credentials.Find(token.KindHDFS, "")
	if !ok {
		t.Fatal("there is no token")
	}
	nn := rpc.New(rpc.Options{
		Protocol:  "org.apache.hadoop.hdfs.protocol.ClientProtocol",
		Addresses: []string{address}, Login: rpc.TokenLogin(k, qop...), Retry: rpc.Retry{Resend: true},
	})
	t.Cleanup(func() { nn.Close() })
	return nn
}
