package write

import (
	"bufio"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

const (
	// answerLimit is how long a pipeline may be silent before its DataNodes are
	// probed one by one: one that hangs, rather than being dead, keeps the whole
	// pipeline from answering.
	answerLimit = 2 * time.Second
	// probeLimit is how long each may take to answer a probe.
	probeLimit = 3 * time.Second
)

// errSilent: a DataNode did not answer a probe.
var errSilent = errors.New("it does not answer")

// probe checks whether the DataNodes of a pipeline answer. It may be used
// by any goroutine.
type probe struct {
	c     *Client
	ctx   context.Context
	nodes []node
	token *wire.BlockTokenProto
	head  *wire.ClientOperationHeaderProto
}

func (f *File) probe() *probe {
	return &probe{c: f.c, ctx: f.running, nodes: slices.Clone(f.s.nodes), token: f.s.token, head: f.header(f.s.token)}
}

// silent finds a DataNode that does not answer; -1: all do.
func (p *probe) silent() int {
	answers := make([]bool, len(p.nodes))
	var all sync.WaitGroup
	for i, n := range p.nodes {
		all.Go(func() { answers[i] = p.answers(n) })
	}
	all.Wait()
	return slices.Index(answers, false)
}

// answers asks for a block that need not exist: a refusal is an answer, too.
func (p *probe) answers(n node) bool {
	ctx, cancel := context.WithTimeout(p.ctx, probeLimit)
	defer cancel()
	conn, err := p.c.o.Dial(ctx, n.info.GetId(), p.token)
	if err != nil {
		return false
	}
	defer conn.Close()
	_, err = transfer.Operate(conn, bufio.NewReader(conn), transfer.ReadBlock, &wire.OpReadBlockProto{
		Header: p.head, Offset: pb.Uint64(0), Len: pb.Uint64(0),
	}, probeLimit)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}
