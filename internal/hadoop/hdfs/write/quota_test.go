package write_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/hdfs/write"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// TestTheFirstFailureIsTold: the NameNode refuses the next block while the end
// of the one before is still being told. That second thing is given up then, and
// must not hide why.
func TestTheFirstFailureIsTold(t *testing.T) {
	const block = 1 << 20
	dir := "/quota"
	for _, args := range [][]string{{"fs", "-mkdir", dir}, {"dfsadmin", "-setSpaceQuota", fmt.Sprint(block), dir}} {
		if out, err := shared.Get(t).Hadoop(t.Context(), args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	// The connection ends with the block's end; the DataNode is not reached again.
	var first sync.Once
	cutting := over(func(conn net.Conn) net.Conn { return endless{Conn: conn, cut: new(atomic.Int32)} })
	dial := func(ctx context.Context, n *wire.DatanodeIDProto, token *wire.BlockTokenProto) (conn net.Conn, err error) {
		first.Do(func() { conn, err = cutting(ctx, n, token) })
		if conn == nil {
			<-ctx.Done()
			err = ctx.Err()
		}
		return conn, err
	}
	f := create(t, clientWith(t, write.Options{Replication: 1, BlockSize: block, Dial: dial}), dir+"/big")
	_, err := f.Write(content(1, 2*block))
	if err == nil {
		err = f.Close()
	}
	if got := hdfs.Errno(err); got != syscall.EDQUOT {
		t.Errorf("the writer is told %v (%v)", got, err)
	}
	if err := f.Abort(); err != nil {
		t.Error(err)
	}
}
