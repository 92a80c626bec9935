package ocdbt

import (
	"encoding/binary"
	"hash/crc32"
)

// WrapManifest and WrapNode make a manifest or a node, with its length and checksum, of what
// follows the length.
func WrapManifest(rest []byte) []byte { return wrap(manifestMagic, rest) }

func WrapNode(rest []byte) []byte { return wrap(nodeMagic, rest) }

func wrap(magic uint32, rest []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, magic)
	b = binary.LittleEndian.AppendUint64(b, uint64(beginSize+len(rest)+sumSize))
	b = append(b, rest...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Unwrap returns the content of a manifest or a node, decompressed.
func Unwrap(frame []byte) ([]byte, error) {
	return unwrap(frame, binary.BigEndian.Uint32(frame), &budget{read: 1 << 20})
}
