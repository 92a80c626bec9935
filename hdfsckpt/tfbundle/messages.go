package tfbundle

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"holdfast/hdfsckpt/tfbundle/wire"
)

// unmarshal parses a message. Fields that are not in package wire are not kept.
var unmarshal = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal

// parseHeader parses a BundleHeaderProto.
func parseHeader(b []byte) (Header, error) {
	var p wire.BundleHeaderProto
	if err := unmarshal(b, &p); err != nil {
		return Header{}, fmt.Errorf("header: %w", err)
	}
	if p.NumShards <= 0 || p.NumShards > maxShards {
		return Header{}, fmt.Errorf("header: %d shards", p.NumShards)
	}
	return Header{
		Shards: int(p.NumShards), BigEndian: p.Endianness == wire.BundleHeaderProto_BIG, Producer: int(p.Version.GetProducer()),
	}, nil
}

// parseEntry parses a BundleEntryProto. The entry has no name yet.
func parseEntry(b []byte) (Entry, error) {
	var p wire.BundleEntryProto
	if err := unmarshal(b, &p); err != nil {
		return Entry{}, err
	}
	e := Entry{DType: DType(p.Dtype), Shard: int(p.ShardId), Offset: p.Offset, Size: p.Size, CRC32C: unmask(p.Crc32C)}
	for _, d := range p.Shape.GetDim() {
		e.Shape = append(e.Shape, d.Size)
	}
	for _, slice := range p.Slices {
		var s Slice
		for _, x := range slice.Extent {
			length := int64(-1) // not set: all of the dimension
			if x.Length != nil {
				length = *x.Length
			}
			s = append(s, Extent{Start: x.Start, Length: length})
		}
		e.Slices = append(e.Slices, s)
	}
	return e, nil
}
