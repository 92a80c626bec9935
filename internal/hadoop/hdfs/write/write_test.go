package write_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
	"holdfast/test/testcluster"
)

const dataNodes = 4

var shared = testcluster.Shared{Options: testcluster.Options{HDFSOnly: true, DataNodes: dataNodes}}

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// client writes with a replication and a block size.
func client(t *testing.T, replication int, blockSize int64) *write.Client {
	t.Helper()
	return clientWith(t, write.Options{Replication: replication, BlockSize: blockSize})
}

func clientWith(t *testing.T, o write.Options) *write.Client {
	t.Helper()
	c, err := conf.Load(shared.Get(t).ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	nn, err := c.NameNodes(shared.Get(t).HDFS())
	if err != nil {
		t.Fatal(err)
	}
	if o.Log == nil {
		log := logrus.New()
		log.SetOutput(t.Output())
		o.Log = log
	}
	return write.New(rpc.New(rpc.Options{
		Protocol: "org.apache.hadoop.hdfs.protocol.ClientProtocol", Addresses: nn, User: os.Getenv("USER"), Retry: rpc.Retry{Resend: true},
	}), o)
}

// content is reproducible noise.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = r.Read(b)
	return b
}

// stored reads a file back with Hadoop's own client.
func stored(t *testing.T, path string) []byte {
	t.Helper()
	local := filepath.Join(t.TempDir(), "copy")
	if out, err := shared.Get(t).Hadoop(t.Context(), "fs", "-get", path, local); err != nil {
		t.Fatalf("hadoop fs -get %s: %v\n%s", path, err, out)
	}
	b, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func same(t *testing.T, path string, want []byte) {
	t.Helper()
	got := stored(t, path)
	if sha256.Sum256(got) != sha256.Sum256(want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Fatalf("%s has %d bytes, want %d; the first difference is at %d", path, len(got), len(want), i)
	}
}

func create(t *testing.T, c *write.Client, path string) *write.File {
	t.Helper()
	f, err := c.Create(t.Context(), path, 0o640, true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSizes(t *testing.T) {
	const block = 1 << 20
	c := client(t, 2, block)
	for _, n := range []int{0, 1, 511, 512, 513, 65536, 65537, block - 1, block, block + 1, 3*block + 12345} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			path, want := fmt.Sprintf("/size-%d", n), content(uint64(n), n)
			f := create(t, c, path)
			for rest := want; len(rest) > 0; { // in odd pieces
				k := min(len(rest), 70001)
				if _, err := f.Write(rest[:k]); err != nil {
					t.Fatal(err)
				}
				rest = rest[k:]
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			same(t, path, want)
		})
	}
}

func TestFlushedBytesAreVisible(t *testing.T) {
	c := client(t, 2, 1<<20)
	f := create(t, c, "/flushed")
	var want []byte
	for i, n := range []int{10, 500, 2, 1, 70000, 1 << 20, 3} {
		b := content(uint64(i), n)
		want = append(want, b...)
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
		flush := f.Flush
		if i%2 == 1 {
			flush = f.Sync
		}
		if err := flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, "/flushed", want)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "/flushed", want)
}

func TestAppend(t *testing.T) {
	c := client(t, 2, 1<<20)
	want := content(1, 1000)
	f := create(t, c, "/appended")
	_, _ = f.Write(want)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		more := content(uint64(i+2), 700)
		want = append(want, more...)
		f, err := c.Append(t.Context(), "/appended")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(more); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "/appended", want)
}

func TestAbortLeavesNothing(t *testing.T) {
	c := client(t, 2, 1<<20)
	f := create(t, c, "/aborted")
	if _, err := f.Write(content(1, 3<<20)); err != nil {
		t.Fatal(err)
	}
	if err := f.Abort(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err == nil {
		t.Error("an aborted file takes more")
	}
	if out, err := shared.Get(t).Hadoop(t.Context(), "fs", "-ls", "/aborted"); err == nil {
		t.Errorf("it is still there: %s", out)
	}
}

func TestManyWriters(t *testing.T) {
	c := client(t, 2, 4<<20)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			f, err := c.Create(t.Context(), fmt.Sprintf("/many-%d", i), 0o644, false)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := io.Copy(f, bytes.NewReader(content(uint64(i), 9<<20))); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		same(t, fmt.Sprintf("/many-%d", i), content(uint64(i), 9<<20))
	}
}

// over dials DataNodes, and wraps each connection.
func over(wrap func(net.Conn) net.Conn) func(context.Context, *wire.DatanodeIDProto, *wire.BlockTokenProto) (net.Conn, error) {
	return func(ctx context.Context, n *wire.DatanodeIDProto, _ *wire.BlockTokenProto) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", n.GetIpAddr(), n.GetXferPort()))
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}
}

// slow holds each write back after its bytes are gone, so that acks come before
// it returns.
type slow struct{ net.Conn }

func (s slow) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	time.Sleep(2 * time.Millisecond)
	return n, err
}

func TestAcksBeforeTheSendReturns(t *testing.T) {
	c := clientWith(t, write.Options{Replication: 2, BlockSize: 16 << 20, Dial: over(func(conn net.Conn) net.Conn { return slow{conn} })})
	want := content(3, 40<<20)
	f := create(t, c, "/slow")
	if _, err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "/slow", want)
}

// TestOneDataNodeAfterTheOther: every DataNode is lost once while one block is
// being written, with two replicas: another one takes the place of each in time.
func TestOneDataNodeAfterTheOther(t *testing.T) {
	const size, piece = 20 << 20, 1 << 20
	c := client(t, 2, 64<<20)
	want := content(9, size)
	f := create(t, c, "/one-after-the-other")
	written := 0
	writeSome := func() {
		t.Helper()
		for range 4 {
			if _, err := f.Write(want[written : written+piece]); err != nil {
				t.Fatalf("after %d MiB: %v", written>>20, err)
			}
			written += piece
		}
		if err := f.Flush(t.Context()); err != nil {
			t.Fatalf("after %d MiB: %v", written>>20, err)
		}
	}
	writeSome()
	for i := range dataNodes {
		victim := shared.Get(t).Daemon(fmt.Sprintf("dn%d", i))
		if err := victim.Kill(); err != nil {
			t.Fatal(err)
		}
		writeSome()
		if err := victim.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "/one-after-the-other", want)
}

// TestADataNodeIsLost kills a DataNode at a different point of the write each
// time, and starts it again afterwards.
func TestADataNodeIsLost(t *testing.T) { loseDataNode(t, 0, 4) }

// TestLongADataNodeIsLost does so at more places of a file.
func TestLongADataNodeIsLost(t *testing.T) { loseDataNode(t, 0, 1, 2, 3, 4, 5) }

func loseDataNode(t *testing.T, rounds ...int) {
	const size, block, piece = 48 << 20, 16 << 20, 1 << 20
	for _, replication := range []int{2, 3} {
		c := client(t, replication, block)
		for _, round := range rounds {
			t.Run(fmt.Sprintf("replication %d round %d", replication, round), func(t *testing.T) {
				path, want := fmt.Sprintf("/lost-%d-%d", replication, round), content(uint64(round), size)
				f := create(t, c, path)
				victim := shared.Get(t).Daemon(fmt.Sprintf("dn%d", round%dataNodes))
				at := (1 + round*7) * piece
				for done := 0; done < size; done += piece {
					if done == at {
						if err := victim.Kill(); err != nil {
							t.Fatal(err)
						}
						defer func() {
							if err := victim.Restart(context.Background()); err != nil {
								t.Error(err)
							}
						}()
					}
					if _, err := f.Write(want[done : done+piece]); err != nil {
						t.Fatalf("after %d MiB: %v", done>>20, err)
					}
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				same(t, path, want)
			})
		}
	}
}

// TestChecksumsAsConfigured: DataNodes have the kind of checksums that was asked for,
// also where a flush ends in the middle of what one is for.
func TestChecksumsAsConfigured(t *testing.T) {
	for _, sums := range []write.Checksum{
		{Type: wire.ChecksumTypeProto_CHECKSUM_CRC32, Bytes: 512},
		{Type: wire.ChecksumTypeProto_CHECKSUM_CRC32C, Bytes: 4096},
		{Type: wire.ChecksumTypeProto_CHECKSUM_CRC32C, Bytes: 3 * 512}, // no part of a full packet
	} {
		name := fmt.Sprintf("%d%s", sums.Bytes, strings.TrimPrefix(sums.Type.String(), "CHECKSUM_"))
		path := "/sums-" + name
		f := create(t, clientWith(t, write.Options{Replication: 2, BlockSize: 3 << 20, Checksum: sums}), path)
		var want []byte
		for i, n := range []int{1, 100, 5000, 70_001, 4 << 20, 3} {
			b := content(uint64(i), n)
			want = append(want, b...)
			if _, err := f.Write(b); err != nil {
				t.Fatal(err)
			}
			if err := f.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		same(t, path, want)
		out, err := shared.Get(t).Hadoop(t.Context(), "fs", "-checksum", path)
		if err != nil || !strings.Contains(out, "MD5-of-"+name) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

// slowTo holds writes back to the DataNode that is dialled first, to some 4 MB a second,
// and counts how often each is dialled.
type slowTo struct {
	mu     sync.Mutex
	victim string
	dialed map[string]int
}

func (s *slowTo) dial(ctx context.Context, n *wire.DatanodeIDProto, token *wire.BlockTokenProto) (net.Conn, error) {
	s.mu.Lock()
	if s.victim == "" {
		s.victim = n.GetDatanodeUuid()
	}
	s.dialed[n.GetDatanodeUuid()]++
	slow := n.GetDatanodeUuid() == s.victim
	s.mu.Unlock()
	return over(func(conn net.Conn) net.Conn {
		if slow {
			return narrow{conn}
		}
		return conn
	})(ctx, n, token)
}

type narrow struct{ net.Conn }

func (n narrow) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(len(b)) * time.Second / (4 << 20))
	return n.Conn.Write(b)
}

// TestASlowDataNodeIsLeft: the blocks after the first one, whose DataNode takes 4 MB a
// second, go to others.
func TestASlowDataNodeIsLeft(t *testing.T) {
	const block, blocks = 8 << 20, 32 // of so many a DataNode gets more than one, unless it is left
	s := &slowTo{dialed: map[string]int{}}
	want := content(7, block*blocks)
	f := create(t, clientWith(t, write.Options{Replication: 1, BlockSize: block, Dial: s.dial}), "/one-is-slow")
	if _, err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if n := s.dialed[s.victim]; n > 1 {
		t.Errorf("the slow DataNode got %d blocks of %d: %v", n, blocks, s.dialed)
	}
	same(t, "/one-is-slow", want)
}
