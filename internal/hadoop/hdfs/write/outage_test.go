package write_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// TestTheNameNodeIsRestarted kills the NameNode in the middle of a write of
// many blocks, and starts it again: the write waits and goes on.
func TestTheNameNodeIsRestarted(t *testing.T) {
	const size, block, piece = 64 << 20, 4 << 20, 1 << 20
	want := content(1, size)
	// A NameNode may take longer to come back than a person wants to wait.
	nameNode := rpc.New(rpc.Options{
		Protocol: "org.apache.hadoop.hdfs.protocol.ClientProtocol", Addresses: []string{strings.TrimPrefix(shared.Get(t).HDFS(), "hdfs://")},
		Retry: rpc.Retry{Resend: true, Limit: 4 * time.Minute},
	})
	defer nameNode.Close()
	f := create(t, write.New(patient{nameNode}, write.Options{Replication: 2, BlockSize: block}), "/restarted")
	nn := shared.Get(t).Daemon("nn")
	back := make(chan error, 1)
	killed := false
	defer func() {
		if killed {
			if err := <-back; err != nil {
				t.Error(err)
			}
		}
	}()
	for done := 0; done < size; done += piece {
		if done == 10*piece {
			if err := nn.Kill(); err != nil {
				t.Fatal(err)
			}
			killed = true
			go func() { back <- nn.Restart(context.Background()) }()
		}
		if _, err := f.Write(want[done : done+piece]); err != nil {
			t.Fatalf("after %d MiB: %v", done>>20, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	same(t, "/restarted", want)
}

// patient waits while the NameNode is in safe mode, as users of this package do.
type patient struct{ *rpc.Client }

func (p patient) Call(ctx context.Context, method string, req, resp proto.Message) error {
	for {
		err := p.Client.Call(ctx, method, req, resp)
		if !rpc.IsSafeMode(err) || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestAllDataNodesAreLost: what was flushed is gone from the writer's memory,
// so the write fails, says why, and the next one works.
func TestAllDataNodesAreLost(t *testing.T) {
	c := client(t, 2, 16<<20)
	f := create(t, c, "/all-lost")
	if _, err := f.Write(content(1, 8<<20)); err != nil {
		t.Fatal(err)
	}
	if err := f.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range dataNodes {
		if err := shared.Get(t).Daemon(fmt.Sprintf("dn%d", i)).Kill(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.Write(content(2, 8<<20))
	if err == nil {
		err = f.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "/all-lost") || !strings.Contains(err.Error(), "every DataNode that had the block is lost") {
		t.Errorf("with no DataNode left: %v", err)
	}
	_ = f.Abort() // also deletes it, which Close has done
	for i := range dataNodes {
		if err := shared.Get(t).Daemon(fmt.Sprintf("dn%d", i)).Restart(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	want := content(3, 1<<20)
	f = create(t, c, "/after-all-lost")
	if _, err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "/after-all-lost", want)
}

// TestADataNodeHangs stops a DataNode, whose ports still accept connections, in
// the middle of a file and before others: each goes on without it, long before
// the time that a DataNode may take for an answer. The later files are another
// client's, who is told what was found out, and does not ask that DataNode at all.
func TestADataNodeHangs(t *testing.T) {
	const block, piece = 8 << 20, 1 << 20
	silent := &transfer.Silent{}
	c := clientWith(t, write.Options{Replication: 3, BlockSize: block, Silent: silent})
	direct := over(func(conn net.Conn) net.Conn { return conn })
	other := clientWith(t, write.Options{Replication: 3, BlockSize: block, Silent: silent, Dial: func(ctx context.Context, n *wire.DatanodeIDProto, token *wire.BlockTokenProto) (net.Conn, error) {
		if silent.Has(n) {
			t.Errorf("the DataNode at port %d was asked once more", n.GetXferPort())
		}
		return direct(ctx, n, token)
	}})
	dn := shared.Get(t).Daemon("dn1")
	defer func() {
		if err := dn.Resume(); err != nil {
			t.Error(err)
		}
	}()
	done := make(chan error, 1)
	var want [][]byte
	for i, size := range []int{5 * block, piece, piece, piece, 2 * block} {
		want = append(want, content(uint64(i), size))
	}
	go func() {
		done <- func() error {
			for i, content := range want {
				client := c
				if i > 0 {
					client = other
				}
				f, err := client.Create(t.Context(), fmt.Sprintf("/hangs-%d", i), 0o640, true)
				if err != nil {
					return err
				}
				for at := 0; at < len(content); at += piece {
					if i == 0 && at == block+block/2 {
						if err := dn.Pause(); err != nil {
							return err
						}
					}
					if _, err := f.Write(content[at : at+piece]); err != nil {
						return err
					}
				}
				if err := f.Close(); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(55 * time.Second): // one wait for an answer takes 75 s
		t.Fatal("the writes wait for a DataNode that hangs")
	}
	for i, content := range want {
		same(t, fmt.Sprintf("/hangs-%d", i), content)
	}
}

// TestAnotherHasTakenTheFile: a writer whose lease another one has had recovered is told that,
// and not that something of HDFS is broken.
func TestAnotherHasTakenTheFile(t *testing.T) {
	f := create(t, client(t, 3, 16<<20), "/taken")
	if _, err := f.Write(content(1, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := f.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := shared.Get(t).Hadoop(t.Context(), "org.apache.hadoop.hdfs.tools.DebugAdmin", "recoverLease", "-path", "/taken", "-retries", "30"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, err := f.Write(content(2, 1000))
	if err == nil {
		err = f.Close()
	}
	if !errors.Is(err, syscall.ESTALE) || !strings.Contains(err.Error(), "another writer") {
		t.Errorf("the writer is told %v", err)
	}
	same(t, "/taken", content(1, 1000))
}
