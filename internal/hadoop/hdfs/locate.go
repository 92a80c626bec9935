package hdfs

import (
	"context"
	"fmt"
)

// BlockPlace is where a block of a file is.
type BlockPlace struct {
	Offset, Size int64
	DataNodes    []string // HOST:PORT of the data transfer, in the NameNode's order
}

// Locate returns where the blocks of a file are.
func (c *Client) Locate(ctx context.Context, name string) ([]BlockPlace, error) {
	s, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	var places []BlockPlace
	for _, b := range s.blocks {
		p := BlockPlace{Offset: int64(b.GetOffset()), Size: int64(b.GetB().GetNumBytes())}
		for _, l := range b.GetLocs() {
			p.DataNodes = append(p.DataNodes, fmt.Sprintf("%s:%d", l.GetId().GetHostName(), l.GetId().GetXferPort()))
		}
		places = append(places, p)
	}
	return places, nil
}
