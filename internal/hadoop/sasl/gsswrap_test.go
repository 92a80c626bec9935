package sasl

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"

	"holdfast/test/bound"
)

func gssKey(kind int32) types.EncryptionKey {
	size := map[int32]int{17: 16, 18: 32, 19: 16, 20: 32}[kind]
	return types.EncryptionKey{KeyType: kind, KeyValue: bytes.Repeat([]byte{7}, size)}
}

// TestWrapKnown has the tokens of a real exchange of layers (in gokrb5's tests).
func TestWrapKnown(t *testing.T) {
	key, _ := hex.DecodeString("14f9bde6b50ec508201a97f74c4e5bd3")
	fromServer, _ := hex.DecodeString("050401ff000c000000000000575e85d601010000853b728d5268525a1386c19f")
	toServer, _ := hex.DecodeString("050400ff000c000000000000000000000101000079a033510b6f127212242b97")
	c := &gssContext{key: types.EncryptionKey{KeyType: 17, KeyValue: key}, in: 0x575e85d6}
	offer, err := c.unwrap(fromServer, false)
	if err != nil || !bytes.Equal(offer, []byte{1, 1, 0, 0}) {
		t.Errorf("unwrapped %x, %v", offer, err)
	}
	if b, err := c.wrap([]byte{1, 1, 0, 0}, false); err != nil || !bytes.Equal(b, toServer) {
		t.Errorf("wrapped %x, %v", b, err)
	}
}

// acceptor makes tokens as a server does, with a filler of ec bytes and rotated
// by rrc.
func acceptor(t testing.TB, key types.EncryptionKey, sequence uint64, message []byte, sealed bool, ec, rrc int) []byte {
	e, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		t.Fatal(err)
	}
	var h, body []byte
	if sealed {
		h = header(flagAcceptor|flagSealed, uint16(ec), sequence)
		plain := append(append(bytes.Clone(message), make([]byte, ec)...), h...)
		if _, body, err = e.EncryptMessage(key.KeyValue, plain, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
			t.Fatal(err)
		}
	} else {
		sum, err := e.GetChecksumHash(key.KeyValue, append(bytes.Clone(message), header(flagAcceptor, 0, sequence)...), keyusage.GSSAPI_ACCEPTOR_SEAL)
		if err != nil {
			t.Fatal(err)
		}
		h = header(flagAcceptor, uint16(len(sum)), sequence)
		body = append(bytes.Clone(message), sum...)
	}
	binary.BigEndian.PutUint16(h[6:], uint16(rrc))
	for range rrc % len(body) { // to the right
		last := body[len(body)-1]
		copy(body[1:], body)
		body[0] = last
	}
	return append(h, body...)
}

// TestWrap: every message arrives, at every encryption type, and none that was
// changed, repeated or put in another place.
func TestWrap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, kind := range []int32{17, 18, 19, 20} {
		for _, sealed := range []bool{false, true} {
			key := gssKey(kind)
			c := &gssContext{key: key, in: 41, out: 41}
			if err := c.check(); err != nil {
				t.Fatal(err)
			}
			for i := range 50 {
				message := make([]byte, r.IntN(300))
				for j := range message {
					message[j] = byte(r.Uint32())
				}
				ec := 0
				if sealed {
					ec = r.IntN(16)
				}
				token := acceptor(t, key, c.in, message, sealed, ec, r.IntN(60))
				broken := bytes.Clone(token)
				at := r.IntN(len(broken))
				if at == 6 || at == 7 {
					at = 2 // another rotation by a multiple of the length is the same token
				}
				broken[at] ^= 1 << r.IntN(8)
				if m, err := c.unwrap(broken, sealed); err == nil {
					t.Fatalf("type %d, sealed %v: byte %d changed, and %x was taken", kind, sealed, at, m)
				}
				got, err := c.unwrap(token, sealed)
				if err != nil || !bytes.Equal(got, message) {
					t.Fatalf("type %d, sealed %v, message %d: %x, %v", kind, sealed, i, got, err)
				}
				if _, err := c.unwrap(token, sealed); err == nil {
					t.Fatal("a message is taken twice")
				}
				if w, err := c.wrap(message, sealed); err != nil || sealed && len(message) > 8 && bytes.Contains(w, message) {
					t.Fatalf("wrapped: %v, or in clear", err)
				}
			}
		}
	}
	c := &gssContext{key: types.EncryptionKey{KeyType: 23, KeyValue: make([]byte, 16)}}
	if err := c.check(); err == nil {
		t.Error("RC4 is taken")
	}
}

func FuzzGSSAPI(f *testing.F) {
	key := gssKey(18)
	for _, sealed := range []bool{false, true} {
		f.Add(acceptor(f, key, 0, []byte("message"), sealed, 0, 3), sealed)
	}
	f.Add([]byte{5, 4, 1, 0xff}, false)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		defer bound.Memory(t, len(b), 1000)()
		c := &gssContext{key: key}
		if m, err := c.unwrap(b, sealed); err == nil && len(m) > len(b) {
			t.Errorf("a message of %d bytes from %d", len(m), len(b))
		}
		g := &GSSAPI{ticket: Ticket{Key: key}}
		if _, err := g.proof(b); err == nil {
			t.Error("a proof was taken")
		}
	})
}
