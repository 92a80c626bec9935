package transfer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// secretOf returns the handshake secret in a block token's identifier. The NameNode
// puts it there to tell DataNodes the protection that its client negotiated
// (dfs.namenode.send.qop.enabled). It returns nil for an identifier that it cannot
// read: only DataNodes have to understand identifiers.
func secretOf(token *wire.BlockTokenProto) *wire.HandshakeSecretProto {
	id := token.GetIdentifier()
	if len(id) == 0 {
		return nil
	}
	m := &wire.BlockTokenSecretProto{}
	if int8(id[0]) <= 0 { // a Writable, whose date makes its first byte negative
		var err error
		if m, err = parseIdentifier(id); err != nil {
			return nil
		}
	} else if pb.Unmarshal(id, m) != nil {
		return nil
	}
	if len(m.GetHandshakeSecret()) == 0 {
		return nil
	}
	return &wire.HandshakeSecretProto{Secret: m.GetHandshakeSecret(), Bpid: pb.String(m.GetBlockPoolId())}
}

// parseIdentifier reads the relevant part of the older form
// (BlockTokenIdentifier.readFieldsLegacy).
func parseIdentifier(b []byte) (*wire.BlockTokenSecretProto, error) {
	r := &writable{r: bytes.NewReader(b)}
	r.vlong()    // expiry
	r.vlong()    // key
	r.longText() // user
	pool := r.longText()
	r.vlong()                           // block
	r.each(r.text)                      // access modes
	r.each(r.text)                      // storage types
	r.each(r.longText)                  // storages
	if r.err == nil && r.r.Len() == 0 { // before there were secrets
		return &wire.BlockTokenSecretProto{}, nil
	}
	secret := r.bytes(r.vlong())
	return &wire.BlockTokenSecretProto{BlockPoolId: &pool, HandshakeSecret: secret}, r.err
}

// writable reads values as WritableUtils.java writes them.
type writable struct {
	r   *bytes.Reader
	err error // the first
}

func (w *writable) bytes(n int64) []byte {
	if w.err == nil && (n < 0 || n > int64(w.r.Len())) {
		w.err = errors.New("a length is beyond the end")
	}
	if w.err != nil {
		return nil
	}
	b := make([]byte, n)
	_, w.err = io.ReadFull(w.r, b)
	return b
}

// vlong reads one byte from -112 to 127, or one that encodes sign and number of
// those that follow.
func (w *writable) vlong() int64 {
	first := w.bytes(1)
	if w.err != nil {
		return 0
	}
	f := int(int8(first[0]))
	if f >= -112 {
		return int64(f)
	}
	n, negative := -112-f, false
	if f < -120 {
		n, negative = -120-f, true
	}
	var v uint64
	for _, c := range w.bytes(int64(n)) {
		v = v<<8 | uint64(c)
	}
	if negative {
		v = ^v
	}
	return int64(v)
}

// text reads a string after its length as a vlong, as enums are written.
func (w *writable) text() string { return string(w.bytes(w.vlong())) }

// longText reads a string after its length of 4 bytes; -1 stands for null.
func (w *writable) longText() string {
	length := w.bytes(4)
	if w.err != nil {
		return ""
	}
	return string(w.bytes(int64(max(0, int32(binary.BigEndian.Uint32(length))))))
}

// each reads a list after its length.
func (w *writable) each(one func() string) {
	for n := w.vlong(); n > 0 && w.err == nil; n-- {
		one()
	}
}
