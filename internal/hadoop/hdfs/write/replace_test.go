package write_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"holdfast/internal/hadoop/hdfs/write"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// losing dials DataNodes until the one that was dialled first is lost.
type losing struct {
	mu     sync.Mutex
	victim string
	lost   bool
	conns  []net.Conn
}

func (l *losing) dial(ctx context.Context, n *wire.DatanodeIDProto, token *wire.BlockTokenProto) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.victim == "" {
		l.victim = n.GetDatanodeUuid()
	}
	is := n.GetDatanodeUuid() == l.victim
	if is && l.lost {
		return nil, errors.New("it is lost")
	}
	conn, err := over(func(c net.Conn) net.Conn { return c })(ctx, n, token)
	if is && err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

func (l *losing) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
	for _, c := range l.conns {
		c.Close()
	}
}

// TestReplacingAsConfigured: whether a block that has lost a DataNode gets another one, and
// whether the write fails if there is none, is as Hadoop's properties say
// (ReplaceDatanodeOnFailure.java, DataStreamer.java). There are four DataNodes.
func TestReplacingAsConfigured(t *testing.T) {
	const never, always = write.ReplaceNever, write.ReplaceAlways
	for name, x := range map[string]struct {
		replication int
		replace     write.Replace
		flushed     bool
		left        int // DataNodes that the block goes on with; 0: the write fails
	}{
		"never":                          {3, write.Replace{Policy: never}, true, 2},
		"never, and strict":              {3, write.Replace{Policy: never, Strict: true}, true, 2},
		"always":                         {3, write.Replace{Policy: always}, false, 3},
		"by default, more than half":     {3, write.Replace{}, false, 2},
		"by default, flushed":            {3, write.Replace{}, true, 3},
		"by default, half":               {2, write.Replace{}, false, 2},
		"there is none, best effort":     {4, write.Replace{Policy: always}, true, 3},
		"there is none, strict":          {4, write.Replace{Policy: always, Strict: true}, true, 0},
		"there is none, three are fewer": {4, write.Replace{Policy: always, Strict: true, Least: 4}, true, 0},
		"there is none, three suffice":   {4, write.Replace{Policy: always, Strict: true, Least: 3}, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			log, l := logrus.New(), &losing{}
			log.SetOutput(io.MultiWriter(&said, t.Output()))
			c := clientWith(t, write.Options{Replication: x.replication, BlockSize: 64 << 20, Replace: x.replace, Window: 1 << 20, Dial: l.dial, Log: log})
			path := "/replacing-" + strings.ReplaceAll(name, " ", "-")
			f := create(t, c, path)
			want := content(5, 8<<20)
			_, err := f.Write(want[:4<<20])
			if err == nil && x.flushed {
				err = f.Flush(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			l.lose()
			if _, err = f.Write(want[4<<20:]); err == nil {
				err = f.Close()
			}
			if x.left == 0 {
				if err == nil || !strings.Contains(err.Error(), "min-replication") {
					t.Errorf("it ends with %v", err)
				}
				if err := f.Abort(); err != nil {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(said.String(), fmt.Sprintf("continues with %d DataNodes", x.left)) {
				t.Errorf("it does not say that the block continues with %d DataNodes:\n%s", x.left, said.String())
			}
			same(t, path, want)
		})
	}
}
