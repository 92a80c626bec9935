//go:build record

package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/sasl"
	"holdfast/internal/hadoop/token"
	wire "holdfast/internal/hadoop/wire/hdfs"
	"holdfast/test/testcluster"
)

// tap notes what goes over a connection.
type tap struct {
	net.Conn
	written [][]byte
	read    []byte
}

func (c *tap) Write(b []byte) (int, error) {
	c.written = append(c.written, bytes.Clone(b))
	return c.Conn.Write(b)
}

func (c *tap) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read = append(c.read, b[:n]...)
	return n, err
}

// TestRecord writes a file at each protection, and testdata anew.
func TestRecord(t *testing.T) {
	const all = "authentication,integrity,privacy"
	cluster, err := testcluster.Start(t.Context(), testcluster.Options{
		HDFSOnly: true, DataNodes: 1, Security: &testcluster.Security{RPC: all, Data: all},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	tokens := filepath.Join(cluster.Dir(), "tokens")
	if _, err := cluster.Hadoop(t.Context(), "fetchdt", "--renewer", "rm", tokens); err != nil {
		t.Fatal(err)
	}
	nn := realNameNode(t, cluster, tokens)
	for _, m := range recordings {
		if err := cluster.Reconfigure(t.Context(), map[string]string{
			"dfs.encrypt.data.transfer.cipher.suites": m.suites,
			"dfs.encrypt.data.transfer":               strconv.FormatBool(m.qop == ""),
			"dfs.encrypt.data.transfer.algorithm":     m.algorithm,
		}); err != nil {
			t.Fatal(err)
		}
		var r recording
		var socket, clear tap
		c := write.New(nn, write.Options{Replication: 1, Dial: func(ctx context.Context, node *wire.DatanodeIDProto, token *wire.BlockTokenProto) (net.Conn, error) {
			var err error
			if m.qop == "" {
				r.Login, err = transfer.KeyLogin(ctx, nn)
			} else {
				r.Login.User, r.Login.Password = sasl.TokenUser(token.GetIdentifier(), token.GetPassword())
				r.Login.QOP = []string{m.qop}
			}
			if err != nil {
				return nil, err
			}
			if socket.Conn, err = net.Dial("tcp", address(node)); err != nil {
				return nil, err
			}
			if clear.Conn, err = r.Login.Handshake(&socket); err != nil {
				return nil, err
			}
			r.Mode = transfer.ModeOf(clear.Conn).String()
			return &clear, nil
		}})
		f, err := c.Create(t.Context(), "/"+m.file, 0o644, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Repeat([]byte("hold fast\n"), 100)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Flush(t.Context()), f.Close()); err != nil {
			t.Fatal(err)
		}
		r.Sent, r.Received, r.Written, r.Read = bytes.Join(socket.written, nil), socket.read, clear.written, clear.read
		b, err := json.MarshalIndent(r, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("testdata", m.file+".json"), append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func realNameNode(t *testing.T, cluster *testcluster.Cluster, tokens string) *rpc.Client {
	credentials, err := token.ReadFile(tokens)
	if err != nil {
		t.Fatal(err)
	}
	k, ok := credentials.Find(token.KindHDFS, "")
	if !ok {
		t.Fatal("there is no token")
	}
	nn := rpc.New(rpc.Options{
		Protocol:  "org.apache.hadoop.hdfs.protocol.ClientProtocol",
		Addresses: []string{strings.TrimPrefix(cluster.HDFS(), "hdfs://")},
		Login:     rpc.TokenLogin(k), Retry: rpc.Retry{Resend: true},
	})
	t.Cleanup(func() { nn.Close() })
	return nn
}
