package store

import (
	"context"

	"holdfast/internal/hadoop/hdfs"
)

// Block is a part of a file, with the hosts that have it.
type Block struct {
	Offset int64    `json:"offset"`
	Bytes  int64    `json:"bytes"`
	Hosts  []string `json:"hosts"` // HOST:PORT of DataNodes
}

// Locate returns the hosts that a file is on; nothing for a store whose files are
// all in one place.
func Locate(ctx context.Context, s Store, name string) ([]Block, error) {
	h, ok := s.(*hdfsStore)
	if !ok {
		return nil, nil
	}
	places, err := h.c.Locate(ctx, h.at(name))
	if err != nil {
		return nil, err
	}
	var blocks []Block
	for _, p := range places {
		blocks = append(blocks, blockOf(p))
	}
	return blocks, nil
}

func blockOf(p hdfs.BlockPlace) Block { return Block{p.Offset, p.Size, p.DataNodes} }
